"""Requests to other nodes, and to this one: `send(node, request) -> Pending[response]`.

The node that is asked may be this process (then the request goes straight to the local handler,
never through a socket) or another one, over one connection kept open for it. The broker half
reaches the controller half in no other way.

A connection starts with ApiVersions, as every Kafka client does, and with a login where the other
side asks for one (`login.py`); a request goes out at the highest version that both sides have, or
at the one that was asked for. A connection that fails is opened
anew at the next request after a back-off that doubles up to its bound; requests that were on it
fail with NETWORK_EXCEPTION, since nobody knows whether they were executed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, Generic, TypeAlias, TypeVar

from kwire.clock import Random
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.login import RENEWED_AT, Login, MakeAuthentication
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.structs import Message, Request

logger = logging.getLogger(__name__)

CONTROLLER = "controller"
API_VERSIONS_KEY = 18
API_VERSIONS_VERSION = 3
FRAME_BYTES_MAX = 100 * 1024 * 1024
QUEUED_REQUESTS_MAX = 1000

_CORRELATION = Struct(">i").unpack_from

Response = TypeVar("Response", bound=Message)

LocalHandler = Callable[[int, int, Request[Message]], Pending[Any]]
"""`handler(api_key, version, request)`: what answers a request is in its type alone."""
Resolver = Callable[[int], tuple[str, int] | None]
Wrap = Callable[[FrameConnection, str], asyncio.BaseProtocol]
"""`wrap(connection, host)`: what stands between a connection to a host and its socket (TLS)."""


class _Sent(Generic[Response]):
    """One request on its way to another node."""

    __slots__ = ("api_key", "message", "pending", "timer", "version")

    def __init__(self, api_key: int, version: int | None, message: Request[Response]) -> None:
        self.api_key = api_key
        self.version = version
        self.message = message
        self.pending: Pending[Response] = Pending()
        self.timer: asyncio.TimerHandle | None = None

    def fail(self, code: ErrorCode, message: str) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.pending.fail(KafkaError(code, message))

    def complete(self, response: Response) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.pending.complete(response)


_AnySent: TypeAlias = _Sent[Any]
"""One among others: each knows what answers it."""


class _PeerConnection(FrameConnection):
    """The frames of one outgoing connection."""

    def __init__(self, link: _Link, pool: BufferPool) -> None:
        super().__init__(pool, FRAME_BYTES_MAX, 4)
        self._link = link

    def opened(self) -> None:
        self._link.connected(self)

    def frame_received(self, frame: memoryview) -> None:
        self._link.answered(frame)

    def frame_refused(self, reason: str) -> None:
        self._link.disconnected(self, reason)
        self.transport.abort()

    def closed(self) -> None:
        self._link.disconnected(self, self.failure or "connection closed")


class _Link:
    """The connection to one node, with what waits for it and what it waits for."""

    def __init__(self, owner: PeerNetwork, node_id: int) -> None:
        self._owner = owner
        self._node_id = node_id
        self._connection: _PeerConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._versions: dict[int, tuple[int, int]] | None = None
        self._chosen: dict[int, int] = {}  # versions by API, of those that were asked for
        self._waiting: deque[_AnySent] = deque()
        self._sent: dict[int, _AnySent] = {}  # by correlation id
        self._correlation_id = 0
        self._retry_at_s = 0.0
        self._failures = 0
        self._warned_of = ""
        self._closed = False
        self._is_ready = False
        self.is_open = False
        """Whether the node is connected, has said its versions and has let this one log in."""
        self._renewal: asyncio.TimerHandle | None = None

    def submit(self, request: _AnySent) -> None:
        if self._is_ready:
            self._write(request)
            return
        if len(self._waiting) >= QUEUED_REQUESTS_MAX:
            request.fail(
                ErrorCode.NETWORK_EXCEPTION, f"too many requests queued for node {self._node_id}"
            )
            return
        self._waiting.append(request)
        if self._connection is None and self._connecting is None:
            self._connecting = self._owner.loop.create_task(self._connect())

    async def _connect(self) -> None:
        loop = self._owner.loop
        try:
            delay_s = self._retry_at_s - loop.time()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            address = self._owner.resolve(self._node_id)
            if address is None:
                raise OSError(f"no address of node {self._node_id} is known")
            host, port = address
            await asyncio.wait_for(
                loop.create_connection(
                    lambda: self._owner.wrap(_PeerConnection(self, self._owner.pool), host),
                    host,
                    port,
                ),
                self._owner.connect_timeout_ms / 1000,
            )
        except (TimeoutError, OSError, ValueError) as error:  # the last: no name of a host
            self._connecting = None
            self._failed(f"cannot connect to node {self._node_id}: {error}")
        else:
            self._connecting = None

    def connected(self, connection: _PeerConnection) -> None:
        if self._closed:
            connection.transport.abort()
            return
        self._connection = connection
        message = m.ApiVersionsRequest(
            client_software_name="kwire", client_software_version=self._owner.software_version
        )
        probe = _Sent(API_VERSIONS_KEY, API_VERSIONS_VERSION, message)
        probe.pending.add_done_callback(self._negotiated)
        self._owner.start_timer(probe, self)
        self._write(probe)

    def _negotiated(self, pending: Pending[m.ApiVersionsResponse]) -> None:
        if pending.error() is not None or pending.result().error_code != 0:
            self._drop("no common version of ApiVersions, or no answer to it")
            return
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version)
            for entry in pending.result().api_keys
        }
        self._log_in()

    # -- the login

    def _log_in(self) -> None:
        """Whatever is asked meanwhile waits."""
        self._is_ready, self._renewal = False, None
        make = self._owner.authentication
        if make is None:
            self.logged_in(0)
            return
        try:
            login = Login(make(), self)
        except KafkaError as error:
            self.login_failed(error)
            return
        login.start()

    def ask_handshake(
        self, request: m.SaslHandshakeRequest, version: int
    ) -> Pending[m.SaslHandshakeResponse]:
        return self._ask(_Sent(request.API_KEY, version, request))

    def ask_authenticate(
        self, request: m.SaslAuthenticateRequest, version: int
    ) -> Pending[m.SaslAuthenticateResponse]:
        return self._ask(_Sent(request.API_KEY, version, request))

    def _ask(self, sent: _Sent[Response]) -> Pending[Response]:
        self._owner.start_timer(sent, self)
        self._write(sent)
        return sent.pending

    def login_failed(self, error: KafkaError) -> None:
        if self._connection is not None:  # else it failed because the connection has
            logger.warning("node %d does not let this node log in: %s", self._node_id, error)
        self._drop(f"login failed: {error}")

    def logged_in(self, session_ms: int) -> None:
        self._is_ready = self.is_open = True
        self._failures = 0
        if session_ms > 0:
            delay_s = session_ms * RENEWED_AT / 1000
            self._renewal = self._owner.loop.call_later(delay_s, self._log_in)
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            if not request.pending.done:
                self._write(request)

    def _choose_version(self, request: _AnySent) -> int | None:
        theirs = (self._versions or {}).get(request.api_key)
        if theirs is None:
            return None
        ours = type(request.message)
        version = min(theirs[1], int(ours.MAX_VERSION))
        if version < max(theirs[0], int(ours.MIN_VERSION)):
            return None
        self._chosen[request.api_key] = version
        return version

    def _write(self, request: _AnySent) -> None:
        assert self._connection is not None
        version = request.version
        if version is None:
            version = self._chosen.get(request.api_key) or self._choose_version(request)
        if version is None:
            request.fail(
                ErrorCode.UNSUPPORTED_VERSION,
                f"node {self._node_id} has no common version of API {request.api_key}",
            )
            return
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        request.version = version
        self._sent[self._correlation_id] = request
        self._connection.write_frames(
            frame.encode_request(
                request.api_key,
                version,
                self._correlation_id,
                self._owner.client_id,
                request.message,
            )
        )

    def answered(self, view: memoryview) -> None:
        (correlation_id,) = _CORRELATION(view)
        request = self._sent.pop(correlation_id, None)
        try:
            if request is None or request.version is None:
                raise MalformedError(f"answer to no request ({correlation_id})")
            _, response = frame.decode_response(request.api_key, request.version, view)
        except MalformedError as error:
            if request is not None:
                request.fail(ErrorCode.NETWORK_EXCEPTION, str(error))
            self._drop(str(error))
            return
        request.complete(response)

    def _drop(self, reason: str) -> None:
        """End the connection; whatever is asked next opens another."""
        connection = self._connection
        if connection is not None:
            self._failed(f"node {self._node_id}: {reason}")
            connection.stop_cutting()
            connection.transport.abort()

    def timed_out(self, request: _AnySent) -> None:
        """A connection without an answer may be one that the other side knows nothing of (its
        machine was started again): as Kafka's clients do, the next request opens another."""
        request.fail(ErrorCode.REQUEST_TIMED_OUT, "no answer in time")
        if any(sent is request for sent in self._sent.values()):
            self._drop("no answer in time")

    def disconnected(self, connection: _PeerConnection, reason: str) -> None:
        if connection is self._connection:
            was_open = self.is_open
            if connection.failure and connection.failure != self._warned_of:
                self._warned_of = connection.failure
                host, port = (connection.transport.get_extra_info("peername") or ("?", 0))[:2]
                logger.warning("%s:%d cannot be reached: %s", host, port, connection.failure)
            self._failed(f"node {self._node_id}: {reason}")
            if was_open and not self._closed:
                self._owner.on_lost(self._node_id)

    def _failed(self, reason: str) -> None:
        self._connection = None
        self._versions = None
        self._is_ready = self.is_open = False
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        self._chosen.clear()
        backoff_ms = min(
            self._owner.backoff_ms * 2 ** min(self._failures, 16), self._owner.backoff_max_ms
        )
        backoff_ms += self._owner.random.below(max(1, backoff_ms // 5))
        self._failures += 1
        self._retry_at_s = self._owner.loop.time() + backoff_ms / 1000
        lost = [*self._sent.values(), *self._waiting]
        self._sent.clear()
        self._waiting.clear()
        for request in lost:
            request.fail(ErrorCode.NETWORK_EXCEPTION, reason)

    def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        connection = self._connection
        self._failed(f"node {self._node_id}: closed")
        if connection is not None:
            connection.transport.abort()


class PeerNetwork:
    """All links of one node.

    `resolve(node_id)` gives the address of a node or None; `controller()` the id of the active
    controller or None. `authentication()` is a new login, where the other nodes ask for one; `wrap`
    protects connections. Times in milliseconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        random: Random,
        *,
        resolve: Resolver,
        controller: Callable[[], int | None],
        client_id: str = "kwire",
        software_version: str = "0",
        request_timeout_ms: int = 30000,
        connect_timeout_ms: int = 10000,
        backoff_ms: int = 50,
        backoff_max_ms: int = 1000,
        authentication: MakeAuthentication | None = None,
        wrap: Wrap = lambda connection, host: connection,
    ) -> None:
        self.loop = loop
        self.pool = pool
        self.random = random
        self.resolve = resolve
        self.controller = controller
        self.client_id = client_id
        self.software_version = software_version
        self.request_timeout_ms = request_timeout_ms
        self.connect_timeout_ms = connect_timeout_ms
        self.backoff_ms = backoff_ms
        self.backoff_max_ms = backoff_max_ms
        self.authentication = authentication
        self.wrap = wrap
        self.on_lost: Callable[[int], None] = lambda node_id: None
        """Hears of a node whose connection has ended, not by this side."""
        self._local: dict[int, LocalHandler] = {}
        self._links: dict[int, _Link] = {}
        self._closed = False

    def bind_local(self, node_id: int, handler: LocalHandler) -> None:
        """Requests for `node_id` go to `handler(api_key, version, request)` in this process."""
        self._local[node_id] = handler

    def send(
        self,
        node: int | str,
        api_key: int,
        request: Request[Response],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[Response]:
        """Ask a node (an id, or `"controller"`); fails with a KafkaError.

        NETWORK_EXCEPTION when the connection is lost or cannot be made, REQUEST_TIMED_OUT,
        NOT_CONTROLLER while no active controller is known, UNSUPPORTED_VERSION.
        """
        if isinstance(node, str):
            node_id = self.controller()
            if node_id is None:
                return Pending.failed(
                    KafkaError(ErrorCode.NOT_CONTROLLER, "no active controller is known")
                )
        else:
            node_id = node
        if self._closed:
            return Pending.failed(KafkaError(ErrorCode.NETWORK_EXCEPTION, "shutting down"))
        local = self._local.get(node_id)
        if local is not None:
            at = type(request).MAX_VERSION if version is None else version
            return local(api_key, at, request)
        link = self._links.get(node_id)
        if link is None:
            link = self._links[node_id] = _Link(self, node_id)
        outgoing = _Sent(api_key, version, request)
        self.start_timer(outgoing, link, timeout_ms)
        link.submit(outgoing)
        return outgoing.pending

    def start_timer(self, request: _AnySent, link: _Link, timeout_ms: int | None = None) -> None:
        """Fail `request` with REQUEST_TIMED_OUT when its time has passed."""
        timeout_ms = self.request_timeout_ms if timeout_ms is None else timeout_ms
        request.timer = self.loop.call_later(timeout_ms / 1000, link.timed_out, request)

    def is_connected(self, node_id: int) -> bool:
        """Whether there is a connection to this node by which it has answered."""
        link = self._links.get(node_id)
        return link is not None and link.is_open

    def disconnect(self, node_id: int) -> None:
        """Forget a node: its address changed or it is gone."""
        link = self._links.pop(node_id, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Fail everything that waits and close every connection."""
        self._closed = True
        links, self._links = self._links, {}
        for link in links.values():
            link.close()
