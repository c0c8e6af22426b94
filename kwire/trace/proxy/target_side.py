"""The proxy's connection to a broker: it may log in first, then frames pass as they are."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.client.strangers import other_protocol
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.login import Login
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import KafkaError, MalformedError
from kwire.protocol.frame import decode_response, encode_request
from kwire.protocol.structs import Message

AnyResponse = TypeVar("AnyResponse", bound=Message)

LOGIN_ID = 0


class TargetSide(FrameConnection):
    """See the module. `received(frame)` gets what comes once it is logged in, `gone(why)` hears
    of its end then, `blocked(is_full)` of whether more may be written."""

    def __init__(
        self,
        pool: BufferPool,
        settings: ConnectionSettings,
        received: Callable[[memoryview], None],
        gone: Callable[[str], None],
        blocked: Callable[[bool], None],
    ) -> None:
        super().__init__(pool, settings.frame_bytes_max, 0)
        self._settings = settings
        self._received = received
        self._gone = gone
        self._blocked = blocked
        self._asked: deque[tuple[int, int, Pending[Message]]] = deque()
        self._login_done: asyncio.Future[None] | None = None
        self._why = ""

    async def log_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do so where the settings say how; ClientError."""
        make, tokens = self._settings.login, self._settings.tokens
        if make is None:
            return
        if tokens is not None and tokens.is_due:
            tokens.take(await loop.run_in_executor(None, tokens.fetch()))
        self._login_done = loop.create_future()
        try:
            Login(make(), self).start()
        except KafkaError as error:
            self.login_failed(error)
        async with asyncio.timeout(self._settings.first_timeout_s):
            await self._login_done
        self._login_done = None
        if self.transport.is_closing():
            raise ClientError("the connection ended behind the login")

    # -- what a login asks of its connection (`kwire/network/login.py`)

    def ask_handshake(
        self, request: m.SaslHandshakeRequest, version: int
    ) -> Pending[m.SaslHandshakeResponse]:
        return self._ask(ApiKey.SASL_HANDSHAKE, version, request, m.SaslHandshakeResponse)

    def ask_authenticate(
        self, request: m.SaslAuthenticateRequest, version: int
    ) -> Pending[m.SaslAuthenticateResponse]:
        return self._ask(ApiKey.SASL_AUTHENTICATE, version, request, m.SaslAuthenticateResponse)

    def logged_in(self, session_ms: int) -> None:
        if self._login_done is not None and not self._login_done.done():
            self._login_done.set_result(None)

    def login_failed(self, error: KafkaError) -> None:
        self._fail_login(f"the login failed: {error.message or error.code.name}")

    def _fail_login(self, why: str) -> None:
        if self._login_done is not None and not self._login_done.done():
            self._login_done.set_exception(ClientError(why))

    def _ask(
        self, api_key: ApiKey, version: int, request: Message, kind: type[AnyResponse]
    ) -> Pending[AnyResponse]:
        answer: Pending[AnyResponse] = Pending()

        def complete(pending: Pending[Message]) -> None:
            response = pending.result()
            assert isinstance(response, kind)
            answer.complete(response)

        pending: Pending[Message] = Pending()
        pending.add_done_callback(complete)
        self._asked.append((api_key, version, pending))
        client_id = self._settings.client_id
        self.write_frames(encode_request(api_key, version, LOGIN_ID, client_id, request))
        return answer

    # -- the connection

    def frame_received(self, frame: memoryview) -> None:
        if not self._asked:
            self._received(frame)
            return
        api_key, version, pending = self._asked.popleft()
        try:
            _, response = decode_response(api_key, version, frame)
        except MalformedError as error:
            self._fail_login(f"the login is answered with what is no reply: {error}")
            return
        pending.complete(response)

    def size_refused(self, size: int) -> None:
        self._why = other_protocol(size.to_bytes(4, "big", signed=True))
        self.transport.abort()

    def pause_writing(self) -> None:
        self._blocked(True)

    def resume_writing(self) -> None:
        self._blocked(False)

    def closed(self) -> None:
        if self._login_done is not None:  # whoever waits for the login goes on from there
            self._fail_login(self._why or "the connection ended during the login")
        else:
            self._gone(self._why or "the broker has closed it")
