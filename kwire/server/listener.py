"""Listeners: sockets that accept connections, and the connections they hold."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kwire.config.listeners import is_wildcard
from kwire.network.buffers import BufferPool
from kwire.server.connection import BrokerConnection
from kwire.server.connection_admission import ConnectionAdmission
from kwire.server.connection_setup import ConnectionSetup
from kwire.server.descriptors import DescriptorReserve, descriptor_of
from kwire.server.dispatch import Dispatcher
from kwire.server.parts import Parts
from kwire.server.principal_traffic import PrincipalTraffic
from kwire.server.request_steps import RequestSteps

if TYPE_CHECKING:
    from kwire.security.sasl.server import AuthenticationCounts, MakeSasl

logger = logging.getLogger(__name__)

BACKLOG = 1024
IDLE_CHECKS_PER_LIMIT = 10
IDLE_MIN_S = 10.0  # a connection that was used since is not closed to make room
UNUSED_MIN_S = 1.0  # the same of one that has never sent anything
ROOM_CONNECTIONS = 32  # that are closed at a time, to make room
ROOM_PAUSE_S = 0.2
REFUSED_PAUSE_S = 60.0
LOCAL_ADDRESSES = ("127.0.0.1", "::1")
WILDCARD_ADDRESSES = ("0.0.0.0", "::")

WrapAccepted = Callable[[BrokerConnection], asyncio.BaseProtocol]


class Listener:
    """One listener of a node: `name` is Kafka's listener name, `port` the bound one after `bind`.

    `parts` is what handlers may use of the node, `steps` what every request passes, `admission`
    says which connections are served; without one all are.
    `connections_max_idle_ms` closes connections on which nothing arrived for that long and
    nothing is pending; -1 never does. `connection_gone()` is called when one has ended. `wrap`
    makes what stands between a connection and its socket (TLS). With `sasl` clients have to
    authenticate before anything else. One of the controller does not keep open files for logs.
    """

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        *,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        parts: Parts,
        steps: RequestSteps,
        request_bytes_max: int,
        admission: ConnectionAdmission | None = None,
        connections_max_idle_ms: int = 600_000,
        connection_gone: Callable[[], None] = lambda: None,
        security_protocol: str = "PLAINTEXT",
        sasl: MakeSasl | None = None,
        wrap: WrapAccepted | None = None,
        is_of_controller: bool = False,
    ) -> None:
        self.name = name
        self.dispatcher = dispatcher
        self.connections: dict[BrokerConnection, None] = {}
        self.port = 0
        self.opened_total = self.closed_total = self.idle_closed_total = 0
        self.traffic = PrincipalTraffic()
        self.authentications = _authentication_counts(sasl)
        self._loop = loop
        self._setup = ConnectionSetup(
            loop=loop,
            pool=pool,
            parts=parts,
            listener_name=name,
            dispatcher=dispatcher,
            steps=steps,
            request_bytes_max=request_bytes_max,
            opened=self.opened,
            closed=self.closed,
            security_protocol=security_protocol,
            sasl=sasl,
            authentications=self.authentications,
        )
        self._make_connection = _connection_class(sasl)
        self._wrap = wrap
        self._admission = admission
        self._is_of_controller = is_of_controller
        self._idle_ms = connections_max_idle_ms
        self._connection_gone = connection_gone
        self._servers: list[asyncio.Server] = []
        self._reserve = DescriptorReserve(0)
        self._room_made_s = 0.0
        self._refused_told_s = -math.inf
        self._idle_timer: asyncio.TimerHandle | None = None
        steps.on_change(self._recompute_plain)

    async def bind(self, host: str, port: int, *, one_family: bool = False) -> None:
        """Take the address; connections are accepted from `start` on. OSError when it is taken.

        `localhost` and every spelling of a wildcard mean both families on one port, where the
        machine has both (Kafka's wildcards are reached over both: measured on 4.4). With
        `one_family` a wildcard leaves the other family to another listener.
        """
        for at, one in enumerate(_addresses(host, one_family)):
            try:
                server = await self._loop.create_server(
                    self.new_connection,
                    one,
                    self.port or port,
                    backlog=BACKLOG,
                    start_serving=False,
                )
            except OSError as error:
                is_taken = error.errno == errno.EADDRINUSE
                if at == 0 or (is_taken and port and is_wildcard(host)):
                    raise
                continue  # no IPv6 on this machine, or the port is taken there
            self._servers.append(server)
            self.port = self.port or server.sockets[0].getsockname()[1]

    async def start(self) -> None:
        """Accept connections."""
        if not self._is_of_controller:  # other nodes are not kept out
            self._reserve = DescriptorReserve.of_process()
        for server in self._servers:
            await server.start_serving()
        if self._idle_timer is None:  # a controller's may serve before the others
            self._arm_idle_check()

    def new_connection(self) -> asyncio.BaseProtocol:
        """The protocol of a connection that is being accepted."""
        connection = self._make_connection(self._setup)
        return connection if self._wrap is None else self._wrap(connection)

    def _recompute_plain(self) -> None:
        for connection in self.connections:
            connection.recompute_plain()

    def opened(self, connection: BrokerConnection) -> None:
        """A connection was accepted; one beyond a limit waits or is closed."""
        self.opened_total += 1
        self.connections[connection] = None
        if self._admission is not None:
            self._admission.opened(connection)
        if (
            self._reserve.is_touched_by(descriptor_of(connection.transport))
            and not self.make_room()
        ):
            self._refuse(connection)

    def _refuse(self, connection: BrokerConnection) -> None:
        """One line a minute says so; clients that are refused come again at once, all of them."""
        kept, limit = self._reserve.kept, self._reserve.limit
        now_s = self._loop.time()
        if now_s >= self._refused_told_s + REFUSED_PAUSE_S:
            self._refused_told_s = now_s
            logger.warning(
                "new connections to %s are refused: %d are open, this process may have %d open "
                "files and keeps %d of them for logs; raise its limit (ulimit -n, LimitNOFILE in "
                "systemd) or have fewer clients (max.connections)",
                self.name,
                len(self.connections),
                limit,
                kept,
            )
        connection.close(f"{kept} of {limit} open files are kept for logs", logging.DEBUG)

    def make_room(self) -> int:
        """Close connections that nobody uses, those first that were idle for longest; how many."""
        now_s = self._loop.time()
        if now_s < self._room_made_s + ROOM_PAUSE_S:
            return 0
        self._room_made_s = now_s
        idle = [
            connection
            for connection in self.connections
            if connection.last_active_s < now_s - _idle_min_s(connection)
            and not connection.is_waiting
        ]
        idle.sort(key=lambda connection: connection.last_active_s)
        for connection in idle[:ROOM_CONNECTIONS]:
            connection.close("idle, and few open files are left (ulimit -n)")
        return len(idle[:ROOM_CONNECTIONS])

    def closed(self, connection: BrokerConnection) -> None:
        """A connection is gone."""
        if self.connections.pop(connection, self) is self:
            return
        self.closed_total += 1
        self.traffic.closed(connection)
        self._connection_gone()  # a file may have been wanting its descriptor
        if self._admission is not None:
            self._admission.closed(connection)
        hear = self._setup.steps.authentication_failed
        if connection.failure and hear is not None:
            hear(connection.client_host, self.name, "SSL", connection.failure)

    def _arm_idle_check(self) -> None:
        if self._idle_ms > 0:
            self._idle_timer = self._loop.call_later(
                max(0.1, self._idle_ms / 1000 / IDLE_CHECKS_PER_LIMIT), self._close_idle
            )

    def _close_idle(self) -> None:
        oldest_s = self._loop.time() - self._idle_ms / 1000
        for connection in list(self.connections):
            if connection.last_active_s < oldest_s and not connection.is_waiting:
                self.idle_closed_total += 1
                connection.close("idle")
        self._arm_idle_check()

    def stop_accepting(self) -> None:
        """Close the sockets; open connections stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def close_connections(self) -> None:
        """Close every connection; replies that are ready are still sent."""
        for connection in list(self.connections):
            connection.close("the broker is stopping", logging.DEBUG)


def _connection_class(sasl: MakeSasl | None) -> type[BrokerConnection]:
    """What serves a connection; that of SASL is loaded only where a listener has it."""
    if sasl is None:
        return BrokerConnection
    from kwire.server.sasl_connection import SaslConnection

    return SaslConnection


def _authentication_counts(sasl: MakeSasl | None) -> AuthenticationCounts | None:
    """What comes of the authentications of a listener; None where there are none."""
    if sasl is None:
        return None
    from kwire.security.sasl.server import AuthenticationCounts

    return AuthenticationCounts()


def _addresses(host: str, one_family: bool) -> tuple[str, ...]:
    """What to bind for a host, its own family first."""
    if host == "localhost":
        return LOCAL_ADDRESSES
    if not is_wildcard(host):
        return (host,)
    both = WILDCARD_ADDRESSES[::-1] if ":" in host else WILDCARD_ADDRESSES
    return both[:1] if one_family else both


def _idle_min_s(connection: BrokerConnection) -> float:
    is_unused = connection.last_active_s == connection.opened_s
    return UNUSED_MIN_S if is_unused else IDLE_MIN_S


def make_room(listeners: Iterable[Listener]) -> None:
    """Close connections that nobody uses: files lack descriptors."""
    for listener in listeners:
        listener.make_room()
