"""One connection to one broker: it knows the versions that both sides have, and may log in first.

Requests go out in the order of the calls and are answered in that order; several may be on their
way. An answer that does not come in time ends the connection: nobody knows what has become of the
request, and the next one on the same connection would wait behind it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

from kwire import __version__
from kwire.client.address import shown
from kwire.client.errors import (
    ClientError,
    Closed,
    LoginFailed,
    Unanswered,
    Unreachable,
    Unsupported,
    check,
)
from kwire.client.settings import ConnectionSettings
from kwire.client.strangers import other_protocol
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.login import AUTHENTICATE_VERSION, HANDSHAKE_VERSION, RENEWED_AT
from kwire.network.tls_connection import reason_of
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedError
from kwire.protocol.frame import decode_response, encode_request
from kwire.protocol.structs import Message, Request

if TYPE_CHECKING:
    from kwire.security.token_login import TokenLogin

Response = TypeVar("Response", bound=Message)

FRAME_BYTES_MIN = 4
IN_FLIGHT_MAX = 1000
API_VERSIONS_VERSION = 3
_CORRELATION = Struct(">i").unpack_from


class _Sent:
    """A request that waits for its answer."""

    __slots__ = ("api_key", "future", "timer", "version")

    def __init__(self, api_key: int, version: int, future: asyncio.Future[Any]) -> None:
        self.api_key = api_key
        self.version = version
        self.future = future
        self.timer: asyncio.TimerHandle | None = None

    def fail(self, error: ClientError) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_exception(error)


class Connection(FrameConnection):
    """See the module; `open_connection` makes one. `api_versions` is what the broker offers."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pool: BufferPool, settings: ConnectionSettings
    ) -> None:
        super().__init__(pool, settings.frame_bytes_max, FRAME_BYTES_MIN)
        self.address = ""
        self.api_versions = m.ApiVersionsResponse()
        self.is_closed = False
        self._loop = loop
        self._settings = settings
        self._versions: dict[int, tuple[int, int]] = {}
        self._sent: dict[int, _Sent] = {}
        self._lost_by = ""
        self._correlation_id = 0
        self._login_due_s: float | None = None
        self._logging_in: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Ask for the versions, log in. ClientError."""
        await self._negotiate()
        if self._settings.login is not None:
            await self._log_in()

    async def _negotiate(self) -> None:
        request = m.ApiVersionsRequest(
            client_software_name="kwire", client_software_version=__version__
        )
        timeout_s = self._settings.first_timeout_s
        response = await self._send(request, API_VERSIONS_VERSION, timeout_s)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:  # an old broker
            response = await self._send(m.ApiVersionsRequest(), 0, timeout_s)
        check(response.error_code, "ApiVersions")
        self.api_versions = response
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys
        }

    async def _log_in(self) -> None:
        """Log in, or again on a connection that is logged in (KIP-368)."""
        assert self._settings.login is not None
        timeout_s = self._settings.first_timeout_s
        if self._settings.tokens is not None:
            await self._renew(self._settings.tokens)
        try:
            login = self._settings.login()
            agreed = await self._send(login.begin(), HANDSHAKE_VERSION, timeout_s)
            request: m.SaslAuthenticateRequest | None = login.agreed(agreed)
            while request is not None:
                version = self._version_of(request, AUTHENTICATE_VERSION)
                request = login.answered(await self._send(request, version, timeout_s))
        except KafkaError as error:
            raise LoginFailed(f"{self.address}: {error.message or error.code.name}") from None
        self._login_due_s = None
        if login.session_ms > 0:
            self._login_due_s = self._loop.time() + login.session_ms / 1000 * RENEWED_AT

    async def _renew(self, tokens: TokenLogin) -> None:
        """Get a token where one is due; where that fails, the login tells."""
        if tokens.is_due:
            from kwire.security.sasl.oauthbearer import InvalidTokenError

            try:
                tokens.take(await self._loop.run_in_executor(None, tokens.fetch()))
            except (OSError, InvalidTokenError) as error:
                tokens.failure = str(error)

    # -- requests

    def finalized(self, feature: str) -> int:
        """The level of a feature that the cluster had when this connection began; 0 for none."""
        for entry in self.api_versions.finalized_features:
            if entry.name == feature:
                return entry.max_version_level
        return 0

    def offers(self, request: type[Request[Message]]) -> tuple[int, int] | None:
        """The lowest and the highest version of an API that both sides have."""
        offered = self._versions.get(request.API_KEY)
        if offered is None:
            return None
        low = max(offered[0], request.MIN_VERSION)
        high = min(offered[1], request.MAX_VERSION)
        return (low, high) if low <= high else None

    def _version_of(self, request: Request[Response], version_max: int | None) -> int:
        kind = type(request)
        name = kind.NAME.removesuffix("Request")
        if kind.API_KEY not in self._versions:
            raise Unsupported(f"{self.address} does not offer {name}")
        found = self.offers(kind)
        if found is None or (version_max is not None and version_max < found[0]):
            raise Unsupported(f"{self.address} offers no version of {name} that is known here")
        return found[1] if version_max is None else min(found[1], version_max)

    async def call(
        self,
        request: Request[Response],
        version_max: int | None = None,
        timeout_s: float | None = None,
    ) -> Response:
        """Send at the highest version that both sides know, up to `version_max`; ClientError."""
        version = self._version_of(request, version_max)
        await self._be_logged_in()
        wait_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        return await self._send(request, version, wait_s)

    async def send_only(self, request: Request[Message], version_max: int | None = None) -> None:
        """Send what has no answer (Produce with acks 0)."""
        version = self._version_of(request, version_max)
        await self._be_logged_in()
        self._write(request, version)

    async def _be_logged_in(self) -> None:
        """Log in again where it is time: once, and all that come meanwhile wait for it."""
        if self._login_due_s is None or self._loop.time() < self._login_due_s:
            return
        if self._logging_in is None:
            self._logging_in = self._loop.create_task(self._log_in())
            self._logging_in.add_done_callback(self._login_done)
        await asyncio.shield(self._logging_in)

    def _login_done(self, done: asyncio.Task[None]) -> None:
        self._logging_in = None
        if not done.cancelled() and done.exception() is not None:
            self.close()

    async def _send(self, request: Request[Response], version: int, timeout_s: float) -> Response:
        if len(self._sent) >= IN_FLIGHT_MAX:
            raise ClientError(f"{self.address}: more than {IN_FLIGHT_MAX} requests wait")
        future: asyncio.Future[Response] = self._loop.create_future()
        number = self._write(request, version)
        sent = self._sent[number] = _Sent(type(request).API_KEY, version, future)
        sent.timer = self._loop.call_later(timeout_s, self._late, timeout_s)
        return await future

    def _write(self, request: Request[Response], version: int) -> int:
        if self.is_closed or self.transport.is_closing():
            raise Closed(f"{self.address} closed the connection")
        self._correlation_id = number = (self._correlation_id + 1) & 0x7FFFFFFF
        key = type(request).API_KEY
        try:
            parts = encode_request(key, version, number, self._settings.client_id, request)
        except EncodeError as error:
            raise ClientError(str(error)) from None
        self.write_frames(parts)
        return number

    def _late(self, timeout_s: float) -> None:
        late = f"{self.address}: no answer within {timeout_s:g} s; is it a Kafka broker?"
        self._end(lambda: Unanswered(late))

    # -- answers

    def frame_received(self, frame: memoryview) -> None:
        (number,) = _CORRELATION(frame)
        sent = self._sent.pop(number, None)
        if sent is None:
            self._end(lambda: ClientError(f"{self.address}: response {number} out of order"))
            return
        if sent.timer is not None:
            sent.timer.cancel()
        version = sent.version
        if sent.api_key == ApiKey.API_VERSIONS and version > 0 and _is_version_0_refusal(frame):
            version = 0
        try:
            _, response = decode_response(sent.api_key, version, frame)
        except MalformedError as error:
            malformed = f"{self.address}: malformed response: {error}"
            sent.fail(ClientError(malformed))
            self._end(lambda: ClientError(malformed))
            return
        if not sent.future.done():
            sent.future.set_result(response)

    def frame_refused(self, reason: str) -> None:
        self._end(lambda: ClientError(f"{self.address} is no Kafka broker: {reason}"))

    def size_refused(self, size: int) -> None:
        stranger = other_protocol(size.to_bytes(4, "big", signed=True))
        self._end(lambda: ClientError(f"{self.address} {stranger}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):  # such as of a certificate that is asked for
            self._lost_by = f"{self.address}: TLS: {reason_of(exc)}"
        super().connection_lost(exc)

    def closed(self) -> None:
        lost_by = self._lost_by or f"{self.address} closed the connection"
        self._end(lambda: Closed(lost_by))

    def close(self) -> None:
        """End it; what waits for an answer fails."""
        self._end(lambda: Closed(f"{self.address}: closed"))

    def _end(self, error: Callable[[], ClientError]) -> None:
        self.is_closed = True
        self.stop_cutting()
        waiting, self._sent = self._sent, {}
        for sent in waiting.values():
            sent.fail(error())
        self.transport.abort()


def _is_version_0_refusal(frame: memoryview) -> bool:
    """ApiVersions at a version that is too high is answered in version 0 with code 35."""
    return len(frame) >= 6 and int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION


async def open_connection(
    loop: asyncio.AbstractEventLoop,
    pool: BufferPool,
    settings: ConnectionSettings,
    host: str,
    port: int,
) -> Connection:
    """A connection that has negotiated and is logged in; ClientError."""
    address = shown(host, port)
    made = Connection(loop, pool, settings)
    made.address = address
    timeout_s = settings.connect_timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            if settings.tls is None:
                await loop.create_connection(lambda: made, host, port)
            else:
                context = settings.tls()
                name = host if settings.check_host_name else ""
                await loop.create_connection(
                    lambda: made, host, port, ssl=context, server_hostname=name
                )
    except TimeoutError:
        raise Unreachable(f"{address}: no connection within {timeout_s:g} s") from None
    except ssl.SSLError as error:
        raise Unreachable(f"{address}: TLS handshake: {reason_of(error)}") from None
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise Unreachable(f"{address}: {reason or error}") from None
    try:
        await made.begin()
    except BaseException:
        made.close()
        raise
    return made
