"""The clients of `large_groups.py --sockets`: a connection each to a broker of its own process.

Beside them a member of another group sends heartbeats from a third process, one every 5 ms at most,
and notes how long each takes, and how much processor time the broker's loop had meanwhile: what
the members of other groups feel while a large one comes together, on this machine, and on one with
nothing else to do.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pathlib
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from bench.brokers import Broker
from bench.groups import PASSING, encoded
from kwire.protocol import frame
from kwire.protocol import messages as m

PATIENCE_S = 120
EVERY_S = 0.005
ALONE_S = 5.0
WATCHED = "watched"
MEMBER_ID_REQUIRED = 79


class Member(asyncio.Protocol):
    """One connection; `heard(data)` gets each answer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.heard: Callable[[bytes], None] = lambda data: None
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        held = self._data
        held += data
        while len(held) >= 4 and len(held) - 4 >= (size := int.from_bytes(held[:4], "big")):
            answer = bytes(held[4 : 4 + size])
            del held[: 4 + size]
            self.heard(answer)


class SocketClients:
    """As `Clients` of large_groups.py, over sockets."""

    def __init__(
        self, broker: Broker, each: list[Member], version_of: Callable[[Any], int]
    ) -> None:
        self.each = each
        self.turns_s: list[float] = [0.0]
        self._broker = broker
        self._version_of = version_of
        self._watch = Watch(broker.port, broker.pid)
        self._cpu_s = broker.cpu_s()
        self._began_s = time.monotonic()

    @classmethod
    async def opened(
        cls, broker: Broker, count: int, version_of: Callable[[Any], int]
    ) -> SocketClients:
        loop = asyncio.get_running_loop()
        each = []
        for _ in range(count):
            _, made = await loop.create_connection(Member, "127.0.0.1", broker.port)
            each.append(made)
        return cls(broker, each, version_of)

    async def turn(self, feed: dict[int, bytes]) -> None:
        await asyncio.sleep(0.01)
        self.turns_s.append(0.0)

    async def ask(
        self, requests: dict[int, Any], then: Callable[[int, Any], Any] = lambda i, answer: None
    ) -> None:
        """Ask, and ask on with what `then` makes of an answer; until everybody has the last one."""
        loop = asyncio.get_running_loop()
        waiting, over = dict(requests), loop.create_future()

        def send(i: int, request: Any) -> None:
            waiting[i] = request
            self.each[i].transport.write(encoded(request, self._version_of(request)))

        def heard(i: int, data: bytes) -> None:
            request = waiting.pop(i)
            version, view = self._version_of(request), memoryview(data)
            try:
                further = then(i, frame.decode_response(request.API_KEY, version, view)[1])
            except BaseException as error:
                if not over.done():
                    over.set_exception(error)
                return
            if further is not None:
                send(i, further)
            elif not waiting and not over.done():
                over.set_result(None)

        for i, request in requests.items():
            self.each[i].heard = lambda data, i=i: heard(i, data)  # type: ignore[misc]
            send(i, request)
        await asyncio.wait_for(over, PATIENCE_S)

    async def alone(self) -> None:
        """What heartbeats take while nothing else happens."""
        await asyncio.to_thread(self._watch.ready)
        self._begin()
        await asyncio.sleep(ALONE_S)
        self.told("nobody joins")

    def _begin(self) -> None:
        self._watch.times_ms()
        self._cpu_s, self._began_s = self._broker.cpu_s(), time.monotonic()

    def told(self, what: str) -> None:
        found = self._watch.times_ms()
        waited, worked = (sorted(each) for each in zip(*found, strict=True))
        cpu_s, took_s = self._broker.cpu_s() - self._cpu_s, time.monotonic() - self._began_s
        print(
            f"{what}: {took_s:.1f} s, {cpu_s:.2f} s of CPU of the broker; {len(found)} heartbeats "
            f"of another group, ms: median, p99 and longest {_told(waited)}, of which the broker "
            f"worked {_told(worked)}",
            flush=True,
        )
        self._begin()

    def close(self) -> None:
        self._watch.stop()
        for member in self.each:
            member.transport.abort()


def _told(times: list[float]) -> str:
    median, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
    return f"{median:.1f}, {p99:.1f}, {times[-1]:.1f}"


class Watch:
    """The process whose heartbeats are timed."""

    def __init__(self, port: int, pid: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=_watch, args=(port, pid, theirs), daemon=True
        )
        self._process.start()

    def ready(self) -> None:
        self._pipe.recv()

    def times_ms(self) -> list[tuple[float, float]]:
        """Of each heartbeat since it was asked last, and of the broker's loop meanwhile."""
        self._pipe.send(None)
        found: list[tuple[float, float]] = self._pipe.recv()
        return found

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()


def _watch(port: int, pid: int, pipe: Connection) -> None:
    schedstat = pathlib.Path(f"/proc/{pid}/schedstat")
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exactly(size: int) -> bytes:
        data = b""
        while len(data) < size:
            found = connection.recv(size - len(data))
            if not found:
                raise SystemExit("bench: the broker closed a connection")
            data += found
        return data

    def ask(request: Any, version: int) -> Any:
        connection.sendall(encoded(request, version))
        data = memoryview(exactly(struct.unpack(">i", exactly(4))[0]))
        return frame.decode_response(request.API_KEY, version, data)[1]

    shape = m.JoinGroupRequest
    join = shape(
        group_id=WATCHED, session_timeout_ms=45_000, rebalance_timeout_ms=60_000,
        protocol_type="consumer", protocols=[shape.JoinGroupRequestProtocol(name="range")],
    )  # fmt: skip
    ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[WATCHED]), 4)
    joined = ask(join, 9)
    while joined.error_code:
        if joined.error_code == MEMBER_ID_REQUIRED:
            join.member_id = joined.member_id
        elif joined.error_code in PASSING:
            time.sleep(0.1)
        else:
            raise SystemExit(f"bench: refused: {joined}")
        joined = ask(join, 9)
    place = {
        "group_id": WATCHED,
        "generation_id": joined.generation_id,
        "member_id": joined.member_id,
    }
    given = m.SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=b"x"
    )
    ask(
        m.SyncGroupRequest(
            **place, protocol_type="consumer", protocol_name="range", assignments=[given]
        ),
        5,
    )
    beat = m.HeartbeatRequest(**place)
    pipe.send("ready")
    times_ms: list[tuple[float, float]] = []
    while True:
        if pipe.poll(EVERY_S):
            pipe.recv()
            pipe.send(times_ms)
            times_ms = []
        worked_ns, began = int(schedstat.read_text().split()[0]), time.perf_counter()
        answer = ask(beat, 4)
        waited_ms = (time.perf_counter() - began) * 1e3
        worked_ms = (int(schedstat.read_text().split()[0]) - worked_ns) / 1e6
        times_ms.append((waited_ms, worked_ms))
        if answer.error_code:
            raise SystemExit(f"bench: a heartbeat is refused: {answer}")


def broker(log: str) -> Broker:
    """A kwire with the settings of `large_groups.py`."""
    command = (
        f"{sys.executable} -m kwire serve --no-http --listen 127.0.0.1:{{port}} --data-dir {{dir}} "
        "-o group.initial.rebalance.delay.ms=3000"
    )
    return Broker("kwire", command, pathlib.Path(tempfile.gettempdir()) / log)
