"""The broker's way to the active controller: in this process, or over its controller listener.

Two connections, so that what a client asks for does not hold up heartbeats: one for the broker's
own requests (`ask`), one for forwarded requests in an Envelope (`forward`, KIP-590). A forwarded
request waits for a controller, and is sent anew to the next one, until its time is over; the
broker's own requests fail at once with NOT_CONTROLLER and are repeated by whoever asks.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Generic, Protocol, TypeVar

from kwire.clock import Random
from kwire.membership.requester import Requester
from kwire.network.buffers import BufferPool
from kwire.network.login import MakeAuthentication
from kwire.network.peer import CONTROLLER, PeerNetwork, Wrap
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.structs import Message, Request

RETRY_MS = 50
FORWARD_TIMEOUT_MS = 30_000
PRINCIPAL_VERSION = 0
SENT_ANEW = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE,
)

Response = TypeVar("Response", bound=Message)


class Quorum(Protocol):
    """Who the active controller is, as far as this node knows."""

    @property
    def leader_id(self) -> int | None: ...

    @property
    def is_active(self) -> bool:
        """Whether it is this node's."""
        ...

    def address_of(self, node_id: int) -> tuple[str, int] | None: ...


class LocalController(Protocol):
    """Lets this node's own controller execute a request; without a requester it is this node's."""

    def __call__(
        self, request: Request[Response], requester: Requester | None, version: int | None
    ) -> Pending[Response]: ...


class ControllerChannel:
    """See the module. `ask_timeout_ms` is how long an answer to the broker's own may take,
    `authentication()` is a login at a controller, `wrap` protects the connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        random: Random,
        *,
        broker_id: int,
        quorum: Quorum,
        execute: LocalController,
        ask_timeout_ms: int,
        authentication: MakeAuthentication | None = None,
        wrap: Wrap = lambda connection, host: connection,
    ) -> None:
        self.loop = loop
        self.quorum = quorum
        self.execute = execute
        self.is_closed = False
        self._broker_id = broker_id
        self._ask_timeout_ms = ask_timeout_ms
        self._authentication = authentication
        self._wrap = wrap
        self._own = self._network("heartbeat", pool, random)
        self._forwarding = self._network("forwarding", pool, random)

    def _network(self, purpose: str, pool: BufferPool, random: Random) -> PeerNetwork:
        return PeerNetwork(
            self.loop,
            pool,
            random,
            resolve=self.quorum.address_of,
            controller=self._controller_id,
            client_id=f"broker-{self._broker_id}-to-controller-{purpose}",
            backoff_max_ms=200,
            authentication=self._authentication,
            wrap=self._wrap,
        )

    def _controller_id(self) -> int | None:
        """The active controller, None also while it is this node and does not serve yet."""
        leader_id = self.quorum.leader_id
        return None if leader_id == self._broker_id else leader_id

    def ask(self, api_key: int, request: Request[Response]) -> Pending[Response]:
        """One of the broker's own requests, to whoever is the active controller now."""
        if self.quorum.is_active:
            return self.execute(request, None, None)
        return self._own.send(CONTROLLER, api_key, request, timeout_ms=self._ask_timeout_ms)

    def forward(
        self,
        request: Request[Response],
        requester: Requester | None,
        *,
        api_key: int | None = None,
        version: int | None = None,
    ) -> Pending[Response]:
        """A client's request, executed by the active controller in the client's name.

        At the version at which it came, unless another is given. Fails with KafkaError
        REQUEST_TIMED_OUT when no controller answers in time.
        """
        key = request.API_KEY if api_key is None else api_key
        if version is None:
            version = request.MAX_VERSION if requester is None else requester.api_version
        return _Forwarded(self, request, requester, int(key), version).start()

    def send_envelope(
        self, request: Message, requester: Requester, api_key: int, version: int
    ) -> Pending[m.EnvelopeResponse]:
        """Wrapped once, to the active controller."""
        return self._forwarding.send(
            CONTROLLER, ApiKey.ENVELOPE, envelope(request, requester, api_key, version)
        )

    def send_plain(
        self, request: Request[Response], api_key: int, version: int
    ) -> Pending[Response]:
        """A request of this broker itself over the forwarding connection."""
        return self._forwarding.send(CONTROLLER, api_key, request, version=version)

    def forget(self, node_id: int) -> None:
        """A controller is gone or moved."""
        self._own.disconnect(node_id)
        self._forwarding.disconnect(node_id)

    def close(self) -> None:
        self.is_closed = True
        self._own.close()
        self._forwarding.close()


class _Forwarded(Generic[Response]):
    """One forwarded request, until a controller has answered it."""

    def __init__(
        self,
        channel: ControllerChannel,
        request: Request[Response],
        requester: Requester | None,
        api_key: int,
        version: int,
    ) -> None:
        self._channel = channel
        self._request = request
        self._requester = requester
        self._api_key = api_key
        self._version = version
        self._reply: Pending[Response] = Pending(self._cancelled)
        self._asked: Pending[Response] | Pending[m.EnvelopeResponse] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline_s = channel.loop.time() + _time_ms(request) / 1000

    def start(self) -> Pending[Response]:
        self._try()
        return self._reply

    def _cancelled(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asked is not None:
            self._asked.cancel()

    def _try(self) -> None:
        self._timer = None
        channel, requester = self._channel, self._requester
        if channel.quorum.is_active:
            asked = channel.execute(self._request, requester, self._version)
            self._asked = asked
            asked.add_done_callback(self._answered)
        elif requester is None:
            asked = channel.send_plain(self._request, self._api_key, self._version)
            self._asked = asked
            asked.add_done_callback(self._answered)
        else:
            wrapped = channel.send_envelope(self._request, requester, self._api_key, self._version)
            self._asked = wrapped
            wrapped.add_done_callback(self._unwrapped)

    def _answered(self, done: Pending[Response]) -> None:
        error = done.error()
        if error is None:
            self._reply.complete(done.result())
        else:
            self._failed(error)

    def _unwrapped(self, done: Pending[m.EnvelopeResponse]) -> None:
        error = done.error()
        if error is not None:
            self._failed(error)
            return
        envelope_response = done.result()
        code = ErrorCode(envelope_response.error_code)
        if code != ErrorCode.NONE:
            if code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.UNSUPPORTED_VERSION):
                code = ErrorCode.UNKNOWN_SERVER_ERROR  # our fault, none of the client's
            self._failed(KafkaError(code))
            return
        try:
            _, response = frame.decode_response(
                self._api_key, self._version, envelope_response.response_data or b""
            )
        except MalformedError:
            self._failed(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._reply.complete(response)

    def _failed(self, error: Exception) -> None:
        code = error.code if isinstance(error, KafkaError) else None
        if code not in SENT_ANEW or self._channel.is_closed:
            self._reply.fail(error)
            return
        loop = self._channel.loop
        if loop.time() >= self._deadline_s:
            self._reply.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
            return
        self._timer = loop.call_later(RETRY_MS / 1000, self._try)


def _time_ms(request: Message) -> int:
    """How long a request may take: what it says itself, within bounds."""
    own: int = getattr(request, "timeout_ms", FORWARD_TIMEOUT_MS)
    return max(0, min(own, FORWARD_TIMEOUT_MS))


def envelope(
    request: Message, requester: Requester, api_key: int, version: int
) -> m.EnvelopeRequest:
    """The request with a header, who asked, and from where."""
    parts = frame.encode_request(
        api_key, version, requester.correlation_id, requester.client_id, request
    )
    data = b"".join(bytes(part) for part in parts)[4:]
    kind, _, name = requester.principal.partition(":")
    principal = m.DefaultPrincipalData(
        type=kind, name=name, token_authenticated=requester.token_authenticated
    )
    return m.EnvelopeRequest(
        request_data=data,
        request_principal=PRINCIPAL_VERSION.to_bytes(2, "big")
        + principal.encode(PRINCIPAL_VERSION),
        client_host_address=address_bytes(requester.client_host),
    )


def address_bytes(client_host: str) -> bytes:
    """`/127.0.0.1` as 4 bytes, an IPv6 address as 16."""
    text = client_host.lstrip("/").partition("%")[0]
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_pton(family, text)
    except OSError:
        return bytes(4)
