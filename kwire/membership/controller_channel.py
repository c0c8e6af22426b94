"""The broker's way to the active controller: in this process, or over its controller listener.

Two connections, so that what a client asks for does not hold up heartbeats: one for the broker's
own requests (`ask`), one for forwarded requests in an Envelope (`forward`, KIP-590). A forwarded
request waits for a controller, and is sent anew to the next one, until its time is over; the
broker's own requests fail at once with NOT_CONTROLLER and are repeated by whoever asks.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from kwire.network.peer import CONTROLLER, PeerNetwork
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError

if TYPE_CHECKING:
    from kwire.node.node import Node
    from kwire.server.parts import Requester as RequestContext

RETRY_MS = 50
FORWARD_TIMEOUT_MS = 30_000
PRINCIPAL_VERSION = 0
SENT_ANEW = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


class ControllerChannel:
    """See the module. `ask_timeout_ms` is how long an answer to the broker's own may take."""

    def __init__(self, node: Node, ask_timeout_ms: int) -> None:
        self._node = node
        self._ask_timeout_ms = ask_timeout_ms
        self._own = self._network("heartbeat")
        self._forwarding = self._network("forwarding")
        self._closed = False

    def _network(self, purpose: str) -> PeerNetwork:
        node = self._node
        return PeerNetwork(
            node.loop,
            node.buffer_pool,
            node.random,
            resolve=lambda node_id: node.metadata.address_of(node_id),
            controller=self._controller_id,
            client_id=f"broker-{node.broker_id}-to-controller-{purpose}",
            backoff_max_ms=200,
        )

    def _controller_id(self) -> int | None:
        """The active controller, None also while it is this node and does not serve yet."""
        leader_id = self._node.metadata.leader_id
        return None if leader_id == self._node.broker_id else leader_id

    def ask(self, api_key: int, request: Any) -> Pending[Any]:
        """One of the broker's own requests, to whoever is the active controller now."""
        if self._node.is_active_controller:
            return self._node.to_controller(request, None, None)
        return self._own.send(CONTROLLER, api_key, request, timeout_ms=self._ask_timeout_ms)

    def forward(
        self,
        request: Any,
        requester: RequestContext | None,
        *,
        api_key: int | None = None,
        version: int | None = None,
    ) -> Pending[Any]:
        """A client's request in the client's name; fails with KafkaError REQUEST_TIMED_OUT when no
        controller answers in time."""
        key = int(request.API_KEY if api_key is None else api_key)
        if version is None:
            version = int(request.MAX_VERSION if requester is None else requester.api_version)
        return _Forwarded(self, self._node, request, requester, key, version).start()

    def send_envelope(
        self, request: Any, context: RequestContext, api_key: int, version: int
    ) -> Pending[Any]:
        """Wrapped once, to the active controller; the result is the EnvelopeResponse."""
        return self._forwarding.send(
            CONTROLLER, ApiKey.ENVELOPE, envelope(request, context, api_key, version)
        )

    def send_plain(self, request: Any, api_key: int, version: int) -> Pending[Any]:
        """A request of this broker itself over the forwarding connection."""
        return self._forwarding.send(CONTROLLER, api_key, request, version=version)

    def forget(self, node_id: int) -> None:
        """A controller is gone or moved."""
        self._own.disconnect(node_id)
        self._forwarding.disconnect(node_id)

    def close(self) -> None:
        self._closed = True
        self._own.close()
        self._forwarding.close()

    @property
    def is_closed(self) -> bool:
        return self._closed


class _Forwarded:
    """One forwarded request, until a controller has answered it."""

    def __init__(
        self,
        channel: ControllerChannel,
        node: Node,
        request: Any,
        context: RequestContext | None,
        api_key: int,
        version: int,
    ) -> None:
        self._channel = channel
        self._node = node
        self._request = request
        self._context = context
        self._api_key = api_key
        self._version = version
        self._reply: Pending[Any] = Pending(self._cancelled)
        self._asked: Pending[Any] | None = None
        self._timer: Any = None
        self._deadline_s = node.loop.time() + _time_ms(request) / 1000

    def start(self) -> Pending[Any]:
        self._try()
        return self._reply

    def _cancelled(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asked is not None:
            self._asked.cancel()

    def _try(self) -> None:
        self._timer = None
        node = self._node
        if node.is_active_controller:
            asked = node.to_controller(self._request, self._context, self._version)
            self._asked = asked
            asked.add_done_callback(self._answered)
        elif self._context is None:
            asked = self._channel.send_plain(self._request, self._api_key, self._version)
            self._asked = asked
            asked.add_done_callback(self._answered)
        else:
            asked = self._channel.send_envelope(
                self._request, self._context, self._api_key, self._version
            )
            self._asked = asked
            asked.add_done_callback(self._unwrapped)

    def _answered(self, done: Pending[Any]) -> None:
        error = done.error()
        if error is None:
            self._reply.complete(done.result())
        else:
            self._failed(error)

    def _unwrapped(self, done: Pending[Any]) -> None:
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
        code = getattr(error, "code", None)
        if code not in SENT_ANEW or self._channel.is_closed:
            self._reply.fail(error)
            return
        loop = self._node.loop
        if loop.time() >= self._deadline_s:
            self._reply.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
            return
        self._timer = loop.call_later(RETRY_MS / 1000, self._try)


def _time_ms(request: Any) -> int:
    """How long a request may take: what it says itself, within bounds."""
    own: int = getattr(request, "timeout_ms", FORWARD_TIMEOUT_MS)
    return max(0, min(own, FORWARD_TIMEOUT_MS))


def envelope(request: Any, context: RequestContext, api_key: int, version: int) -> Any:
    """An EnvelopeRequest: the request with a header, who asked, and from where."""
    parts = frame.encode_request(
        api_key, version, context.correlation_id, context.client_id, request
    )
    data = b"".join(bytes(part) for part in parts)[4:]
    kind, _, name = context.principal.partition(":")
    principal = m.DefaultPrincipalData(
        type=kind, name=name, token_authenticated=bool(getattr(context, "by_token", False))
    )
    return m.EnvelopeRequest(
        request_data=data,
        request_principal=PRINCIPAL_VERSION.to_bytes(2, "big")
        + principal.encode(PRINCIPAL_VERSION),
        client_host_address=address_bytes(context.client_host),
    )


def address_bytes(client_host: str) -> bytes:
    """`/127.0.0.1` as 4 bytes, an IPv6 address as 16."""
    text = client_host.lstrip("/").partition("%")[0]
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_pton(family, text)
    except OSError:
        return bytes(4)
