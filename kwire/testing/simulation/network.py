"""TCP between simulated hosts: streams with drawn delays, partitions, resets and back-pressure.

What a stream guarantees holds (order, no loss within a connection, back-pressure); everything
around it is drawn from the seed: how long bytes travel, how they are cut into reads, when a
connection breaks. A blocked direction holds its bytes back, as a lost packet does, until it heals.

Two rules of the memory seam are enforced here: a written view is read only when it is delivered,
so a sender that reuses memory sends garbage; and after `buffer_updated` the buffer that the
protocol offers next is filled with a pattern, so a receiver that kept a view of it reads garbage.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kwire.clock import Random
from kwire.testing.simulation.links import Cut, Links
from kwire.testing.simulation.loop import ProtocolFactory, SimulatedLoop

POISON = b"\xdb"
WRITE_HIGH_WATER_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 30.0
FIRST_EPHEMERAL_PORT = 40_000


class World(Protocol):
    """Time, chance and the hosts, as the network needs them (`scheduler.py`)."""

    @property
    def now(self) -> float: ...

    @property
    def random(self) -> Random: ...

    @property
    def hosts(self) -> Mapping[str, Host]: ...

    def uniform(self, low: float, high: float) -> float: ...

    def chance(self, per_million: int) -> bool: ...

    def record(self, who: str, what: str) -> None: ...


class Host(Protocol):
    """A machine with an address (`host.py`); `up` while its process runs."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def up(self) -> bool: ...

    @property
    def powered(self) -> bool: ...

    @property
    def simulation(self) -> World: ...

    @property
    def loop(self) -> SimulatedLoop: ...


class NetworkConditions:
    """How the network behaves; changed while it runs. Times in seconds, chances per million."""

    def __init__(self) -> None:
        self.latency_min_s = 0.0001
        self.latency_max_s = 0.001
        self.slow_per_million = 0
        self.slow_max_s = 0.5
        self.reset_per_million = 0
        self.small_reads = True


class SimulatedNetwork:
    """Who listens where, who is connected to whom, which directions are blocked."""

    def __init__(self, simulation: World) -> None:
        self._simulation = simulation
        self.conditions = NetworkConditions()
        self.links = Links()
        self._listeners: dict[tuple[str, int], SimulatedServer] = {}
        self._blocked: dict[tuple[str, str, int | None], None] = {}
        self._transports: dict[SimulatedTransport, None] = {}
        self._next_port = FIRST_EPHEMERAL_PORT

    # --- faults ---

    def block(self, source: str, destination: str, port: int | None = None) -> None:
        """Hold back everything that `source` sends to `destination` (names of hosts); with `port`
        only on connections to that port of either."""
        self._simulation.record("network", f"block {source}->{destination} {port or ''}".rstrip())
        self._blocked[source, destination, port] = None

    def heal(
        self, source: str | None = None, destination: str | None = None, port: int | None = None
    ) -> None:
        """Let a blocked direction (or all) pass again; what was held back arrives now.

        With `port` only what is blocked by that port is let pass.
        """
        self._simulation.record("network", f"heal {source or '*'}->{destination or '*'}")
        for blocked in list(self._blocked):
            if (
                source in (None, blocked[0])
                and destination in (None, blocked[1])
                and port in (None, blocked[2])
            ):
                del self._blocked[blocked]
        for transport in list(self._transports):
            transport.wake()

    def is_blocked(self, source: str, destination: str, port: int | None = None) -> bool:
        blocked = self._blocked
        if not blocked or source == destination:
            return False
        return (source, destination, None) in blocked or (source, destination, port) in blocked

    def reset_connections(self, one: str, other: str) -> None:
        """Break every connection between two hosts."""
        for transport in list(self._transports):
            peer = transport.peer
            if peer is not None and transport.host.name == one and peer.host.name == other:
                transport.break_both()

    def latency_between(self, source: str, destination: str) -> float:
        """Of one link."""
        delay = self.links.delay(source, destination)
        if delay is None:
            return self.latency()
        return self.latency() + self._simulation.uniform(*delay)

    def latency(self) -> float:
        conditions = self.conditions
        simulation = self._simulation
        if conditions.slow_per_million and simulation.chance(conditions.slow_per_million):
            return simulation.uniform(conditions.latency_max_s, conditions.slow_max_s)
        return simulation.uniform(conditions.latency_min_s, conditions.latency_max_s)

    # --- hosts, listeners, connections ---

    def host_crashed(self, host: Host, *, silently: bool) -> None:
        """Take a host's listeners and connections away; peers are reset unless `silently`."""
        for key in [key for key in self._listeners if key[0] == host.name]:
            del self._listeners[key]
        for transport in [t for t in self._transports if t.host is host]:
            transport.vanish(reset_peer=not silently)

    def listen(self, host: Host, port: int, protocol_factory: ProtocolFactory) -> SimulatedServer:
        if port == 0:
            port = self._ephemeral_port()
        key = (host.name, port)
        if key in self._listeners:
            raise OSError(98, f"address already in use: port {port} of {host.name}")
        server = SimulatedServer(self, host, port, protocol_factory)
        self._listeners[key] = server
        return server

    def is_listening(self, server: SimulatedServer) -> bool:
        return self._listeners.get((server.host.name, server.port)) is server

    def stop_listening(self, server: SimulatedServer) -> None:
        if self.is_listening(server):
            del self._listeners[server.host.name, server.port]

    async def connect(
        self,
        source: Host,
        address: str,
        port: int,
        protocol_factory: ProtocolFactory,
    ) -> tuple[asyncio.Transport, Any]:
        loop = source.loop
        target = self._resolve(source, address)
        if target is None:
            raise socket.gaierror(socket.EAI_NONAME, f"no such host: {address}")
        deadline = self._simulation.now + CONNECT_TIMEOUT_S
        await _pause(loop, self.latency_between(source.name, target.name))
        while not target.powered or self._cut(source, target, port):
            if self._simulation.now >= deadline:
                raise TimeoutError(f"no answer from {target.name}")
            await _pause(loop, 0.2)
        server = self._listeners.get((target.name, port))
        await _pause(loop, self.latency())
        if server is None or self._listeners.get((target.name, port)) is not server:
            raise ConnectionRefusedError(111, f"connection refused: {target.name}:{port}")
        local = (source.address, self._ephemeral_port())
        remote = (target.address, port)
        near = SimulatedTransport(self, source, local, remote, port)
        far = SimulatedTransport(self, target, remote, local, port)
        near.peer, far.peer = far, near
        self._transports[near] = self._transports[far] = None
        protocol = protocol_factory()
        near.set_protocol(protocol)
        protocol.connection_made(near)
        target.loop.call_soon(far.accept, server.protocol_factory)
        return near, protocol

    def forget(self, transport: SimulatedTransport) -> None:
        self._transports.pop(transport, None)

    def forget_all(self) -> None:
        self._transports.clear()
        self._listeners.clear()

    def _cut(self, source: Host, target: Host, port: int) -> bool:
        return self.is_blocked(source.name, target.name, port) or self.is_blocked(
            target.name, source.name, port
        )

    def _resolve(self, source: Host, address: str) -> Host | None:
        if address in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::"):
            return source
        for host in self._simulation.hosts.values():
            if address in (host.name, host.address):
                return host
        return None

    def _ephemeral_port(self) -> int:
        self._next_port += 1
        return self._next_port


class SimulatedServer:
    """A listening port; has what programs use of `asyncio.Server`."""

    def __init__(
        self,
        network: SimulatedNetwork,
        host: Host,
        port: int,
        protocol_factory: ProtocolFactory,
    ) -> None:
        self._network = network
        self.host = host
        self.port = port
        self.protocol_factory = protocol_factory
        self.sockets = [_NamedSocket((host.address, port))]
        self._forever: list[asyncio.Future[None]] = []

    def close(self) -> None:
        self._network.stop_listening(self)
        for waiter in self._forever:
            if not waiter.done():
                waiter.cancel()

    def close_clients(self) -> None:
        """Its connections are the protocols' to close."""

    abort_clients = close_clients

    async def wait_closed(self) -> None:
        """A closed listener is gone at once."""

    def is_serving(self) -> bool:
        return self._network.is_listening(self)

    async def serve_forever(self) -> None:
        """Until it is cancelled or closed, which cancels it."""
        waiter = self.host.loop.create_future()
        self._forever.append(waiter)
        try:
            await waiter
        finally:
            self.close()

    async def __aenter__(self) -> SimulatedServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def start_serving(self) -> None:
        """A listener serves from its creation."""

    def get_loop(self) -> SimulatedLoop:
        return self.host.loop


class _NamedSocket:
    """Stands for a socket where only its name is asked."""

    def __init__(self, name: tuple[str, int]) -> None:
        self._name = name

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def setsockopt(self, *options: object) -> None:
        """There are no options to set."""


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self,
        network: SimulatedNetwork,
        host: Host,
        local: tuple[str, int],
        remote: tuple[str, int],
        port: int,
    ) -> None:
        super().__init__({"sockname": local, "peername": remote, "socket": _NamedSocket(local)})
        self.host = host
        self.port = port  # the one that was connected to
        # Which connection it is, of both ends: the port of who opened it is given once.
        self._number = max(local[1], remote[1]) - FIRST_EPHEMERAL_PORT
        self.peer: SimulatedTransport | None = None
        self._network = network
        self._simulation = host.simulation
        self._loop = host.loop
        self._protocol: Any = None
        self._is_buffered = False
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._high, self._low = WRITE_HIGH_WATER_BYTES, WRITE_HIGH_WATER_BYTES // 4
        self._writing_paused = False
        self._reading_paused = False
        self._eof_after_unsent = False
        self._closing = False
        self._lost = False
        self._told_lost = False
        self._vanished = False
        self._delivery_at = 0.0
        self._deliveries = 0

    # --- asyncio.Transport ---

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._lost or self._eof_after_unsent:
            return
        for data in list_of_data:
            view = memoryview(data)
            if type(data) is not bytes and (view.format != "B" or view.ndim != 1):
                view = view.cast("B")
            size = len(view)
            if size:
                self._unsent.append(view)
                self._unsent_bytes += size
        reset_per_million = self._network.conditions.reset_per_million
        if reset_per_million and self._simulation.chance(reset_per_million):
            self.break_both()
            return
        peer = self.peer
        if peer is not None and peer._vanished:
            self._maybe_unknown(peer)
        self._schedule_delivery()
        if self._unsent_bytes > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = WRITE_HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._eof_after_unsent:
            self._eof_after_unsent = True
            self._schedule_delivery()

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            if self.peer is not None:
                self.peer.wake()

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    def close(self) -> None:
        """What was written is still sent, by the kernel; the protocol is done with it at once."""
        if not self._closing:
            self._closing = True
            self.write_eof()
            self._report_lost(None)

    def abort(self) -> None:
        self._closing = True
        peer = self.peer
        self._lose(None)
        if peer is not None:
            peer.reset_later()

    # --- what the network does to it ---

    def accept(self, protocol_factory: ProtocolFactory) -> None:
        """The server's side of a new connection begins."""
        if self._lost:
            return
        self.set_protocol(protocol_factory())
        self._protocol.connection_made(self)
        if self.peer is not None:
            self.peer.wake()

    def wake(self) -> None:
        """Something that held bytes back may be gone."""
        if self._unsent or self._eof_after_unsent:
            self._schedule_delivery()

    def break_both(self) -> None:
        """The connection is reset under both ends."""
        peer = self.peer
        self.reset_later()
        if peer is not None:
            peer.reset_later()

    def reset_later(self) -> None:
        if not self._lost:
            at = self._simulation.now + self._network.latency()
            self._loop.call_at(at, self._lose, ConnectionResetError(104, "connection reset"))

    def _maybe_unknown(self, peer: SimulatedTransport) -> None:
        """What is sent to a machine that was started again meanwhile is answered by a reset."""
        if peer.host.up and not self._network.is_blocked(self.host.name, peer.host.name, self.port):
            self.reset_later()

    def vanish(self, *, reset_peer: bool) -> None:
        """This end's host is gone."""
        self._lost = self._closing = self._vanished = True
        self._network.forget(self)
        peer = self.peer
        if reset_peer and peer is not None:
            peer.reset_later()

    # --- delivery: runs on the receiver's loop ---

    def _schedule_delivery(self) -> None:
        peer = self.peer
        if peer is None or self._lost:
            return
        network = self._network
        if network.links.are_well:
            latency = network.latency()
        else:
            latency = network.latency_between(self.host.name, peer.host.name)
            latency += network.links.apart_s * self._number
        earliest = self._simulation.now + latency
        if earliest > self._delivery_at:
            self._delivery_at = earliest
        self._deliveries += 1
        peer._loop.call_at(self._delivery_at, self._deliver)

    def _deliver(self) -> None:
        self._deliveries -= 1
        peer = self.peer
        if self._lost or peer is None or peer._lost or peer._protocol is None:
            return
        network, unsent = self._network, self._unsent
        if network._blocked and network.is_blocked(self.host.name, peer.host.name, self.port):
            return
        if unsent and not network.links.are_well:
            cut = network.links.next_delivery(self.host.name, peer.host.name)
            if cut is not None:
                self._cut_delivery(peer, cut)
                return
        while unsent and not peer._reading_paused and not peer._lost:
            peer._receive(unsent)
        size = sum(map(len, unsent)) if unsent else 0
        self._unsent_bytes = size
        if self._writing_paused and size <= self._low:
            self._writing_paused = False
            self._loop.call_soon(self._resume_writing)
        if self._eof_after_unsent and not unsent:
            peer._receive_eof()
            if self._closing:
                self._loop.call_soon(self._lose, None)

    def _cut_delivery(self, peer: SimulatedTransport, cut: Cut) -> None:
        """Some of what was sent arrives, or nothing; then both ends are told of a reset."""
        kept = self._simulation.random.below(sum(map(len, self._unsent)))
        if cut is Cut.MIDDLE and kept:
            beginning = bytearray(kept)
            _move(self._unsent, memoryview(beginning), kept)
            arriving = deque([memoryview(bytes(beginning))])
            while arriving and not peer._reading_paused and not peer._lost:
                peer._receive(arriving)
        self._unsent.clear()
        self._unsent_bytes = 0
        self.break_both()

    def _resume_writing(self) -> None:
        if not self._told_lost:
            self._protocol.resume_writing()

    def _receive(self, incoming: deque[memoryview]) -> None:
        """Hand `incoming`, or its beginning, to the protocol, as one read."""
        if self._closing:  # a closing transport reads no more
            incoming.clear()
            return
        limit = len(incoming[0]) if len(incoming) == 1 else sum(map(len, incoming))
        if self._network.conditions.small_reads and limit > 1 and self._simulation.chance(100_000):
            limit = 1 + self._simulation.random.below(limit)
        protocol = self._protocol
        if self._is_buffered:
            with memoryview(protocol.get_buffer(-1)) as buffer:
                size = len(buffer)
                if limit < size:
                    size = limit
                if size == len(incoming[0]):
                    buffer[:size] = incoming.popleft()
                else:
                    _move(incoming, buffer, size)
                protocol.buffer_updated(size)
            # As a real loop has by now: a view of it that is alive is one that somebody keeps.
            if not self._closing and not self._lost:
                self._poison(protocol, size)
        else:
            data = bytearray(limit)
            _move(incoming, memoryview(data), limit)
            protocol.data_received(bytes(data))

    def _poison(self, protocol: asyncio.BufferedProtocol, size: int) -> None:
        with memoryview(protocol.get_buffer(-1)) as free:
            if size > len(free):
                size = len(free)
            free[:size] = POISON * size

    def _receive_eof(self) -> None:
        if self._lost or self._protocol is None:
            return
        if not self._protocol.eof_received():
            self.close()

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._network.forget(self)
        self._report_lost(error)

    def _report_lost(self, error: Exception | None) -> None:
        if self._protocol is not None and not self._told_lost:
            self._told_lost = True
            self._loop.call_soon(self._protocol.connection_lost, error)


def _move(incoming: deque[memoryview], target: memoryview, size: int) -> None:
    """The first `size` bytes of `incoming` go to `target`."""
    at = 0
    while at < size:
        first = incoming.popleft()
        end = at + len(first)
        if end > size:
            incoming.appendleft(first[size - at :])
            first, end = first[: size - at], size
        target[at:end] = first
        at = end


async def _pause(loop: SimulatedLoop, seconds: float) -> None:
    future = loop.create_future()
    loop.call_later(seconds, _wake, future)
    await future


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
