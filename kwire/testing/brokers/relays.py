"""Connections between the brokers of a cluster go through here, so that they can be cut.

A relay stands in front of each address by which brokers reach each other. Who connects says so in
the header of its first request: the client ids of brokers have their number in them. Between two
that are parted nothing passes in either direction, as where a network drops all packets; when they
are joined again, what was held goes on.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kwire.testing.brokers.runner import HOST
from kwire.testing.loop_thread import LoopThread

BACKLOG = 100
READ_BYTES = 256 * 1024
FIRST_HEADER = 14
"""Bytes from a frame's size to its client id: size, API key, version, correlation id, length."""


class Address(NamedTuple):
    """Of a relay, and whose it is."""

    node_id: int
    name: str


class Relays:
    """All relays of a cluster, on a loop in a thread of its own; its methods block."""

    def __init__(self) -> None:
        self._thread = LoopThread("kwire-relays")
        self._loop = self._thread.loop
        self._thread.start()
        self._targets: dict[Address, int] = {}
        self._ports: dict[Address, int] = {}
        self._listening: dict[Address, socket.socket] = {}
        self._crossings: dict[_Crossing, None] = {}
        self._parted: set[frozenset[int]] = set()

    def add(self, address: Address, target_port: int, port: int) -> None:
        """Relay what connects to `port` to `target_port`, once it is opened."""
        self._targets[address] = target_port
        self._ports[address] = port

    def open(self, node_id: int) -> None:
        """Listen in front of a node that is about to start."""
        self._thread.run(self._open(node_id))

    def close(self, node_id: int) -> None:
        """Refuse connections: the node has ended."""
        self._thread.run(self._close(node_id))

    def set_parted(self, pairs: set[frozenset[int]]) -> None:
        """The pairs of nodes between which nothing passes."""

        async def change() -> None:
            self._parted = set(pairs)
            for crossing in self._crossings:
                crossing.look()

        self._thread.run(change())

    def end(self) -> None:
        """Close everything, and the thread."""

        async def end() -> None:
            for address in list(self._listening):
                await self._close(address.node_id)
            tasks = [one.task for one in self._crossings if one.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # transports end in a turn of the loop

        self._thread.run(end())
        self._thread.close()

    async def _open(self, node_id: int) -> None:
        for address, port in self._ports.items():
            if address.node_id == node_id and address not in self._listening:
                # Not asyncio's server: in Python 3.11 one that is closed while a connection
                # comes in leaves that open for ever.
                listening = socket.create_server((HOST, port), backlog=BACKLOG)
                listening.setblocking(False)
                self._loop.add_reader(listening, self._accept, address, listening)
                self._listening[address] = listening

    async def _close(self, node_id: int) -> None:
        for address in [one for one in self._listening if one.node_id == node_id]:
            listening = self._listening.pop(address)
            self._loop.remove_reader(listening)
            listening.close()
        for crossing in [one for one in self._crossings if one.target_id == node_id]:
            crossing.abort()

    def _accept(self, address: Address, listening: socket.socket) -> None:
        try:
            accepted, _ = listening.accept()
        except OSError:
            return  # whoever came has gone
        crossing = _Crossing(address.node_id, accepted, self._is_parted)
        self._crossings[crossing] = None
        crossing.task = self._loop.create_task(crossing.run(self._targets[address]))
        crossing.task.add_done_callback(lambda task: self._ended(crossing, accepted))

    def _ended(self, crossing: _Crossing, accepted: socket.socket) -> None:
        crossing.abort()
        accepted.close()  # a task that is cancelled before its first step has closed nothing
        self._crossings.pop(crossing, None)

    def _is_parted(self, one: int, other: int) -> bool:
        return frozenset((one, other)) in self._parted


class _Crossing:
    """One connection through a relay."""

    def __init__(
        self, target_id: int, accepted: socket.socket, is_parted: Callable[[int, int], bool]
    ) -> None:
        self.target_id = target_id
        self.task: asyncio.Task[None] | None = None
        self._accepted = accepted
        self._is_parted = is_parted
        self._origin_id: int | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._writers: list[asyncio.StreamWriter] = []

    def look(self) -> None:
        """Whether something passes may have changed."""
        if self._origin_id is not None and self._is_parted(self._origin_id, self.target_id):
            self._passes.clear()
        else:
            self._passes.set()

    def abort(self) -> None:
        """Cut it, in both directions."""
        for writer in self._writers:
            writer.transport.abort()
        if not self._writers and self.task is not None:
            # A transport may have the socket already: to close it beneath that leaves its number
            # to the next socket, which the loop then refuses.
            self.task.cancel()

    async def run(self, target_port: int) -> None:
        """Until one side ends."""
        try:
            reader, writer = await asyncio.open_connection(sock=self._accepted)
            self._writers.append(writer)
            first = b""
            while (origin := _origin(first)) is None:
                more = await reader.read(READ_BYTES)
                if not more:
                    return
                first += more
            self._origin_id = origin
            self.look()
            await self._passes.wait()
            target_reader, target_writer = await asyncio.open_connection(HOST, target_port)
            self._writers.append(target_writer)
            target_writer.write(first)
            await _first_of(self._pass(reader, target_writer), self._pass(target_reader, writer))
        except OSError:
            pass  # what is cut on one side is cut on the other

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            await self._passes.wait()
            writer.write(data)
            await writer.drain()
        await self._passes.wait()  # that the other side has ended is not heard of either


async def _first_of(*works: Awaitable[None]) -> None:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _origin(frame: bytes) -> int | None:
    """The number in the client id; -1 where there is none, None while it is not there whole."""
    if len(frame) < FIRST_HEADER:
        return None
    length = int.from_bytes(frame[FIRST_HEADER - 2 : FIRST_HEADER], "big", signed=True)
    if length > 0 and len(frame) < FIRST_HEADER + length:
        return None
    client_id = frame[FIRST_HEADER : FIRST_HEADER + max(length, 0)].decode(errors="replace")
    found = re.search(r"-(\d+)", client_id)
    return int(found[1]) if found else -1
