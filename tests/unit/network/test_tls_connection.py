"""TLS between a transport and frames: bytes, pauses, ends, on both loops; garbage harms nobody."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.loop import new_event_loop
from kwire.network.tls_connection import JOINED_BYTES_MAX, TlsConnection, _pieces
from tests.support.certificates import Authority
from tests.support.leftovers import Leftovers

AUTHORITY = Authority()
NODE = AUTHORITY.sign("node")
WAIT_S = 40.0


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    directory: Path = tmp_path_factory.mktemp("certificates")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(NODE.write(directory, "node"))
    return server, ssl.create_default_context(cadata=AUTHORITY.pem)


class Frames(FrameConnection):
    """Keeps what it gets; an echo sends it back."""

    def __init__(self, loop: asyncio.AbstractEventLoop, is_echo: bool = False) -> None:
        super().__init__(BufferPool(), 1 << 24)
        self.is_echo = is_echo
        self.got: list[bytes] = []
        self.wanted = 0
        self.arrived: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.pauses = 0

    def frame_received(self, frame: memoryview) -> None:
        if self.is_echo:
            self.write_frames([struct.pack(">i", len(frame)), bytes(frame)])
            return
        self.got.append(bytes(frame))
        if len(self.got) == self.wanted:
            self.arrived.set_result(None)

    def pause_writing(self) -> None:
        self.pauses += 1
        if self.is_echo:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.is_echo:
            self.transport.resume_reading()

    def closed(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


class Pair:
    """An echo that listens with TLS, and connections to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Any, client: Any) -> None:
        self.loop = loop
        self._contexts = server, client
        self.accepted: list[Frames] = []
        self.port = 0

    async def listen(self, timeout_ms: int = 30_000) -> None:
        def made() -> TlsConnection:
            self.accepted.append(Frames(self.loop, is_echo=True))
            return TlsConnection(
                self.loop,
                self.accepted[-1],
                self._contexts[0],
                server_side=True,
                handshake_timeout_ms=timeout_ms,
            )

        self._server = await self.loop.create_server(made, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Everything, so that the loop can close."""
        self._server.close()
        for frames in self.accepted:
            if not frames.gone.done():
                frames.transport.abort()
                await frames.gone
        await asyncio.sleep(0)

    async def connect(self, name: str = "localhost") -> Frames:
        frames = Frames(self.loop)
        await self.loop.create_connection(
            lambda: TlsConnection(
                self.loop, frames, self._contexts[1], server_side=False, server_hostname=name
            ),
            "127.0.0.1",
            self.port,
        )
        return frames


@pytest.fixture(params=[True, False], ids=["uvloop", "asyncio"])
def run(
    request: Any, contexts: tuple[Any, Any]
) -> Callable[[Callable[[Pair], Awaitable[None]]], None]:
    def run_it(steps: Callable[[Pair], Awaitable[None]]) -> None:
        loop = new_event_loop(request.param)
        pair = Pair(loop, *contexts)
        try:
            loop.run_until_complete(asyncio.wait_for(steps(pair), WAIT_S))
        finally:
            loop.run_until_complete(pair.close())
            loop.close()

    return run_it


def frames_of(seed: int) -> list[bytes]:
    chance = random.Random(seed)
    sizes = [chance.choice((1, 7, 1000, 16_384, 16_385, 70_000, 1_500_000)) for _ in range(30)]
    return [chance.randbytes(size) for size in sizes]


def test_frames_of_all_sizes_come_back_as_they_were_sent(run: Any) -> None:
    """What is written before the handshake is done is sent after it."""

    async def steps(pair: Pair) -> None:
        await pair.listen()
        client = await pair.connect()
        sent = frames_of(1)
        client.wanted = len(sent)
        for frame in sent:
            client.write_frames([struct.pack(">i", len(frame)), frame])
        await client.arrived
        assert client.got == sent
        client.transport.close()
        await client.gone
        await pair.accepted[0].gone

    run(steps)


def test_who_does_not_read_stops_the_other_side(run: Any) -> None:
    """The echo's unsent bytes are bounded, and everything arrives once the client reads again."""

    async def steps(pair: Pair) -> None:
        await pair.listen()
        client = await pair.connect()
        client.wanted = 1
        client.write_frames([struct.pack(">i", 3), b"one"])
        await client.arrived  # the handshake is done
        client.got, client.wanted, client.arrived = [], 40, pair.loop.create_future()
        client.transport.pause_reading()
        frame = bytes(1_000_000)
        for _ in range(client.wanted):
            client.write_frames([struct.pack(">i", len(frame)), frame])
        while not pair.accepted or not pair.accepted[0].pauses:
            await asyncio.sleep(0.01)
        unsent = pair.accepted[0].transport.get_write_buffer_size()  # type: ignore[attr-defined]
        assert unsent < 8_000_000
        assert client.got == []
        client.transport.resume_reading()
        await client.arrived
        assert client.got == [frame] * client.wanted
        client.transport.abort()
        await client.gone

    run(steps)


def test_a_handshake_that_is_not_done_in_time_ends(run: Any) -> None:
    async def steps(pair: Pair) -> None:
        await pair.listen(timeout_ms=50)
        plain = socket.create_connection(("127.0.0.1", pair.port))
        plain.setblocking(False)
        with plain:
            assert await pair.loop.sock_recv(plain, 1) == b""
        assert pair.accepted[0].failure == "TLS handshake: not done after 50 ms"
        await pair.accepted[0].gone

    run(steps)


def test_a_name_that_is_not_in_the_certificate_ends_the_connection(run: Any) -> None:
    async def steps(pair: Pair) -> None:
        await pair.listen()
        client = await pair.connect("elsewhere.example")
        await client.gone
        assert client.failure.startswith("TLS handshake: the certificate is not trusted: Hostname")

    run(steps)


def test_an_end_is_told_to_the_application_after_what_came_before(run: Any) -> None:
    async def steps(pair: Pair) -> None:
        await pair.listen()
        client = await pair.connect()
        client.wanted = 1
        client.write_frames([struct.pack(">i", 3), b"one"])
        await client.arrived
        pair.accepted[0].transport.close()
        await client.gone
        assert client.got == [b"one"]
        assert client.failure == ""

    run(steps)


def test_of_a_connection_that_has_ended_nothing_is_left_for_the_collector(run: Any) -> None:
    async def talk(pair: Pair) -> None:
        client = await pair.connect()
        client.wanted = 1
        client.write_frames([struct.pack(">i", 3), b"one"])
        await client.arrived
        client.transport.close()
        await client.gone
        await pair.accepted.pop().gone

    async def steps(pair: Pair) -> None:
        await pair.listen()
        await talk(pair)
        with Leftovers() as leftovers:
            for _ in range(3):
                await talk(pair)
            await asyncio.sleep(0)
            assert not leftovers.look()

    run(steps)


def test_who_only_looks_whether_the_port_is_open_has_not_failed_to_log_in(run: Any) -> None:
    """A load balancer does, every few seconds; nodes of the cluster do when one begins to serve."""

    async def steps(pair: Pair) -> None:
        await pair.listen()
        for end in (b"", struct.pack("ii", 1, 0)):
            plain = socket.create_connection(("127.0.0.1", pair.port))
            while not pair.accepted:
                await asyncio.sleep(0)
            if end:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, end)
            plain.close()
            looked_at = pair.accepted.pop()
            await looked_at.gone
            assert looked_at.failure == ""

    run(steps)


class Timers:
    """A loop that keeps what is to be called later."""

    def __init__(self) -> None:
        self.armed: dict[asyncio.TimerHandle, None] = {}

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Any:
        class Timer:
            def cancel(timer) -> None:
                self.armed.pop(timer, None)  # type: ignore[call-overload]

        timer: Any = Timer()
        self.armed[timer] = None
        return timer

    def create_future(self) -> Any:
        return None


def test_a_connection_that_waits_to_be_served_has_its_time_for_the_handshake_later(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    loop: Any = Timers()
    application = Frames(loop)
    connection = TlsConnection(loop, application, contexts[0], server_side=True)
    connection.connection_made(Wire())
    assert len(loop.armed) == 1
    application.transport.pause_reading()
    assert not loop.armed
    application.transport.resume_reading()
    assert len(loop.armed) == 1
    application.transport.close()
    assert not loop.armed


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.written = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@settings(max_examples=150, deadline=None)
@given(chunks=st.lists(st.binary(min_size=1, max_size=300), max_size=6), starts=st.booleans())
def test_whatever_arrives_in_a_handshake_no_more_than_the_connection_ends(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], chunks: list[bytes], starts: bool
) -> None:
    loop = asyncio.new_event_loop()
    try:
        application = Frames(loop)
        connection = TlsConnection(loop, application, contexts[0], server_side=True)
        wire = Wire()
        connection.connection_made(wire)
        if starts:
            chunks = [b"\x16\x03\x01\x00\x40\x01\x00\x00\x3c\x03\x03", *chunks]
        for chunk in chunks:
            buffer = connection.get_buffer(-1)
            buffer[: len(chunk)] = chunk
            connection.buffer_updated(len(chunk))
        assert not connection.is_established
        assert application.got == []
        assert not wire.written or wire.written[0] == 0x15  # an alert, at most
        connection.eof_received()
        assert wire.is_closed
        connection.connection_lost(None)
        assert bool(application.failure) is bool(chunks), "who only looks is no failed login"
    finally:
        loop.close()


def test_small_parts_are_joined_to_records_and_large_ones_left_alone() -> None:
    large = bytes(JOINED_BYTES_MAX + 1)
    assert _pieces([b"a", b"b", b"c"]) == [b"abc"]
    assert _pieces([large]) == [large]
    assert _pieces([b"a", b"b", large, b"c"]) == [b"ab", large, b"c"]
    half = bytes(JOINED_BYTES_MAX // 2)
    assert [len(piece) for piece in _pieces([half, half, half])] == [len(half) * 2, len(half)]
