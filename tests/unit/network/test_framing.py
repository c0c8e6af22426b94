"""Frames out of a byte stream: any cut, any size, and who owns the memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.network import buffers, frames
from kwire.network.buffers import BufferPool, is_kept
from kwire.network.frames import FrameConnection

LIMIT = 4 * 1024 * 1024


class Collector(FrameConnection):
    def __init__(self, pool: BufferPool, keep: bool = False, limit: int = LIMIT) -> None:
        super().__init__(pool, limit)
        self.frames: list[bytes] = []
        self.kept: list[memoryview] = []
        self.refused: list[str] = []
        self.keep = keep

    def frame_received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self.keep:
            self.kept.append(frame[:])

    def frame_refused(self, reason: str) -> None:
        self.refused.append(reason)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def feed(connection: Collector, data: bytes, size: int) -> None:
    """Give `data` to the connection in reads of at most `size` bytes."""
    view = memoryview(data)
    while view:
        buffer: Any = memoryview(connection.get_buffer(-1))
        taken = min(len(buffer), len(view), size)
        buffer[:taken] = view[:taken]
        connection.buffer_updated(taken)  # a loop may hold the buffer meanwhile
        del buffer
        view = view[taken:]


@settings(max_examples=60, deadline=None)
@given(
    bodies=st.lists(st.integers(1, 700), min_size=1, max_size=12),
    cuts=st.integers(1, 400),
    trusted=st.booleans(),
)
def test_any_cut_gives_the_same_frames(bodies: list[int], cuts: int, trusted: bool) -> None:
    connection = Collector(BufferPool())
    connection.is_trusted = trusted
    data = [bytes([n % 251]) * n for n in bodies]
    feed(connection, b"".join(framed(body) for body in data), cuts)
    assert connection.frames == data
    assert connection._partial is None, "no buffer is owned between frames"


@pytest.mark.parametrize("size", [16_381, 300_000, 1_000_050, 3_000_000])
@pytest.mark.parametrize("read", [1_000_000_000, 65_536])
def test_large_frames(size: int, read: int) -> None:
    connection = Collector(BufferPool())
    body = bytes(range(256)) * (size // 256 + 1)
    feed(connection, framed(b"a") + framed(body[:size]) + framed(b"b"), read)
    assert connection.frames == [b"a", body[:size], b"b"]


def test_what_is_only_announced_is_not_allocated() -> None:
    pool = BufferPool()
    connections = [Collector(pool, limit=1 << 30) for _ in range(20)]
    for connection in connections:
        connection.connection_made(Paused())  # type: ignore[arg-type]
        feed(connection, (1 << 29).to_bytes(4, "big") + b"x" * 100, 1 << 30)
        assert connection._partial is not None
        assert len(connection._partial) <= buffers.FIRST_ALLOCATION_BYTES


def test_a_partial_frame_of_a_few_bytes_owns_a_few_bytes() -> None:
    connection = Collector(BufferPool())
    feed(connection, b"\0\0", 10)
    assert connection._partial is not None
    assert len(connection._partial) == 4
    feed(connection, b"\0\x10abc", 10)
    assert len(connection._partial) == 20


@pytest.mark.parametrize("size", [0, -1, -(2**31), LIMIT + 1, 2**31 - 1])
@pytest.mark.parametrize("cut", [1, 1000])
def test_sizes_out_of_bounds_are_refused(size: int, cut: int) -> None:
    connection = Collector(BufferPool())
    feed(connection, framed(b"good") + size.to_bytes(4, "big", signed=True) + b"more", cut)
    assert connection.frames == [b"good"]
    assert len(connection.refused) == 1


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_memory_that_somebody_sees_is_never_written_again(size: int) -> None:
    pool = BufferPool()
    keeper, other = Collector(pool, keep=True), Collector(pool)
    first = b"k" * size
    feed(keeper, framed(first), 1 << 30)
    for letter in (b"x", b"y", b"z"):
        feed(other, framed(letter * size), 1 << 30)
        feed(keeper, framed(letter * size), 1 << 30)
    assert bytes(keeper.kept[0]) == first
    assert [bytes(view[:1]) for view in keeper.kept] == [b"k", b"x", b"y", b"z"]


def test_without_keepers_the_same_memory_serves_all() -> None:
    pool = BufferPool()
    connections = [Collector(pool) for _ in range(10)]
    for _ in range(5):
        for connection in connections:
            feed(connection, framed(b"x" * 1000), 1 << 30)
    assert pool.replaced == 0
    first = pool.take(1_000_000, 1_000_000)
    pool.give_back(first)
    assert pool.take(1_000_000) is first


class Paused:
    """A transport that says whether it reads."""

    def __init__(self) -> None:
        self.reading = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


def test_large_frames_share_a_budget_and_wait_in_order() -> None:
    size = 2_000_000
    pool = BufferPool(reserved_bytes_max=5_000_000)
    connections = [Collector(pool) for _ in range(5)]
    for connection in connections:
        connection.connection_made(Paused())  # type: ignore[arg-type]
        feed(connection, framed(b"x" * size)[:300_000], 1 << 30)

    def reading() -> list[bool]:
        return [connection.transport.reading for connection in connections]

    assert reading() == [True, True, False, False, False]
    assert pool.budget.reserved_bytes == 2 * (size + 4)
    rest = framed(b"x" * size)[300_000:]
    feed(connections[1], rest, 1 << 30)
    assert reading() == [True, True, True, False, False]
    connections[3].connection_lost(None)
    connections[0].connection_lost(None)
    assert reading() == [True, True, True, False, True]
    for connection in (connections[2], connections[4]):
        feed(connection, rest, 1 << 30)
        assert connection.frames == [b"x" * size]
    assert pool.budget.reserved_bytes == 0


def test_a_frame_beyond_the_budget_is_admitted_alone() -> None:
    pool = BufferPool(reserved_bytes_max=10)
    small, large = Collector(pool), Collector(pool)
    for connection in (small, large):
        connection.connection_made(Paused())  # type: ignore[arg-type]
    body = b"x" * 3_000_000
    feed(large, framed(body)[:100], 1 << 30)
    feed(small, framed(b"y" * 1_000_000), 1 << 30)
    assert small.frames == [b"y" * 1_000_000], "what is small needs no budget"
    feed(large, framed(body)[100:], 1 << 30)
    assert large.frames == [body]


def test_is_kept_sees_views() -> None:
    buffer = bytearray(10)
    assert not is_kept(buffer)
    view = memoryview(buffer)[2:4]
    assert is_kept(buffer)
    del view
    assert not is_kept(buffer)
    assert len(buffer) == 10


def test_a_lost_connection_gives_its_buffer_back() -> None:
    pool = BufferPool()
    connection = Collector(pool)
    feed(connection, (500_000).to_bytes(4, "big") + b"x" * 100_000, 1 << 30)
    owned = connection._partial
    connection.connection_lost(None)
    assert owned is not None
    assert pool.take(len(owned)) is owned


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("read", [400_000, 700_000, 1 << 30])
def test_large_frames_one_after_another_keep_their_bytes(read: int, keep: bool) -> None:
    connection = Collector(BufferPool(), keep=keep)
    bodies = [bytes([n]) * (999_000 + n) for n in range(6)] + [b"small"] * 3 + [b"x" * 300_000]
    feed(connection, b"".join(map(framed, bodies)), read)
    assert connection.frames == bodies
    if keep:
        assert [bytes(view) for view in connection.kept] == bodies, "memory that is seen is kept"


def test_a_large_frame_stays_where_its_first_read_put_it() -> None:
    pool = BufferPool()
    connection = Collector(pool)
    frame = framed(b"y" * 999_000)
    feed(connection, frame, 1 << 30)
    feed(connection, frame[:600_000], 1 << 30)
    assert connection._partial is pool.received
    feed(connection, frame[600_000:] + framed(b"z"), 1 << 30)
    assert connection.frames == [frame[4:], frame[4:], b"z"]


def test_a_large_buffer_is_not_held_for_a_few_bytes() -> None:
    pool = BufferPool()
    connections = [Collector(pool) for _ in range(10)]
    for connection in connections:
        feed(connection, framed(b"y" * 3_999_000), 1 << 30)
        feed(connection, framed(b"y" * 3_999_000)[:1000], 1 << 30)
        assert connection._partial is not pool.received


@pytest.mark.parametrize("arrived", [5, 1000, 10_000, 200_000, 500_000])
def test_who_is_not_trusted_holds_twice_what_has_arrived(arrived: int) -> None:
    """A client that had not logged in held 256 KB for five bytes, and 1 MB for a bit more."""
    connection = Collector(BufferPool())
    connection.is_trusted = False
    data = framed(bytes(512 * 1024))
    feed(connection, data[:arrived], 1400)
    assert connection._partial is not None
    assert len(connection._partial) <= max(frames.UNTRUSTED_BYTES, 2 * arrived)
    feed(connection, data[arrived:], 1400)
    assert connection.frames == [data[4:]]
