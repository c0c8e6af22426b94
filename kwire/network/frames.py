"""Frames over a byte stream, for incoming and outgoing connections.

    offset  size  type
    0       4     int32   size of what follows
    4       size          header and body of one request or response

A connection receives into the loop's shared buffer and owns a buffer only while it holds a
partial frame. A frame is handed on as a view that is valid until `frame_received` returns, unless
somebody keeps it (see `buffers.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from struct import Struct
from typing import cast

from kwire.network.buffers import LARGE_RECEIVE_BYTES_MAX, RESERVED_FROM_BYTES, BufferPool

SIZE_PREFIX_BYTES = 4
UNTRUSTED_BYTES = 1024
_SIZE = Struct(">i").unpack_from
Buffer = bytes | bytearray | memoryview


class FrameConnection(asyncio.BufferedProtocol):
    """Cuts the stream into frames. Subclasses override the five methods at the end.

    `frame_bytes_min` and `frame_bytes_max` bound the size field; a frame outside of them goes to
    `frame_refused`, and nothing more is read.
    """

    __slots__ = (
        "_expected",
        "_filled",
        "_frame_bytes_min",
        "_partial",
        "_pool",
        "_refused",
        "_reserved",
        "_target",
        "failure",
        "frame_bytes_max",
        "is_trusted",
        "transport",
    )

    def __init__(self, pool: BufferPool, frame_bytes_max: int, frame_bytes_min: int = 1) -> None:
        self.transport: asyncio.Transport
        """From `opened` on."""
        self.frame_bytes_max = frame_bytes_max
        self._frame_bytes_min = frame_bytes_min
        self._pool = pool
        self._partial: bytearray | None = None
        self._filled = 0
        self._target = 0
        self._expected = 0  # size of the last frame that came in pieces
        self._reserved = 0
        self._refused = False
        self.is_trusted = True
        """Whether memory is held ready for a frame that has only begun."""
        self.failure = ""
        """Why the other side has not proved who it is: of a TLS handshake or its certificate."""

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # one of a stream, by any loop
        self.opened()

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        partial = self._partial
        if partial is None:
            return self._pool.shared(self._expected)
        end = min(self._target, len(partial))
        return memoryview(partial)[self._filled : end]

    def buffer_updated(self, nbytes: int) -> None:
        partial = self._partial
        if self._refused:
            self._filled = 0  # whatever still arrives is dropped, in place
            return
        if partial is None:
            with memoryview(self._pool.received) as view:
                self._cut(view, nbytes)
        else:
            self._filled += nbytes
            if self._filled == self._target or self._filled == len(partial):
                self._partial_filled(partial)
        self.batch_received()

    def eof_received(self) -> bool:
        return self.half_closed()

    def connection_lost(self, exc: Exception | None) -> None:
        partial, self._partial = self._partial, None
        if partial is not None:
            self._pool.give_back(partial)
        self._pool.budget.forget(self._granted)
        self._release()
        self._refused = True
        self.closed()

    # -- cutting

    def _cut(self, view: memoryview, end: int) -> None:
        """Hand on the whole frames of view[:end]; start a partial one with the rest."""
        position = 0
        while not self._refused:
            left = end - position
            if left < SIZE_PREFIX_BYTES:
                if left:
                    self._begin_partial(SIZE_PREFIX_BYTES, view[position:end])
                return
            (size,) = _SIZE(view, position)
            if not self._frame_bytes_min <= size <= self.frame_bytes_max:
                self._refuse_size(size)
                return
            body = position + SIZE_PREFIX_BYTES
            stop = body + size
            if stop > end:
                self._begin_partial(SIZE_PREFIX_BYTES + size, view[position:end], not position)
                return
            self.frame_received(view[body:stop])
            position = stop

    def _refuse_size(self, size: int) -> None:
        self._refused = True
        self.size_refused(size)

    def size_refused(self, size: int) -> None:
        """A frame's size is out of bounds."""
        self.frame_refused(f"frame of {size} bytes")

    def _begin_partial(self, target: int, start: memoryview, in_front: bool = False) -> None:
        """Hold `start` of a frame; `in_front` says that it begins where the last read began."""
        held = len(start)
        partial = self._pool.claim(target, held) if in_front else None
        if partial is None:
            partial = self._take(target, held)
            partial[:held] = start
        self._partial, self._filled, self._target = partial, held, target
        self._expected = target if target <= LARGE_RECEIVE_BYTES_MAX else 0
        if target > RESERVED_FROM_BYTES:
            if self._pool.budget.reserve(target, self._granted):
                self._reserved = target
            else:
                self.memory_awaited(True)

    def _take(self, wanted_bytes: int, held_bytes: int) -> bytearray:
        """See `BufferPool.take`: of who is not trusted, twice what has arrived."""
        if self.is_trusted:
            return self._pool.take(wanted_bytes, held_bytes)
        return bytearray(min(wanted_bytes, max(UNTRUSTED_BYTES, 2 * held_bytes)))

    def _granted(self) -> None:
        self._reserved = self._target
        self.memory_awaited(False)

    def _release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        if reserved:
            self._pool.budget.release(reserved)

    def _partial_filled(self, partial: bytearray) -> None:
        """What was asked for has arrived: the size field, a first piece, or the whole frame."""
        target = self._target
        if target == SIZE_PREFIX_BYTES:
            (size,) = _SIZE(partial)
            self._partial = None
            if self._frame_bytes_min <= size <= self.frame_bytes_max:
                self._begin_partial(SIZE_PREFIX_BYTES + size, memoryview(partial))
            else:
                self._refuse_size(size)
            return
        if self._filled < target:
            larger = self._take(target, self._filled)
            larger[: self._filled] = partial
            self._partial = larger
            self._pool.give_back(partial)
            return
        self._partial = None
        with memoryview(partial) as view:
            self.frame_received(view[SIZE_PREFIX_BYTES:target])
        self._pool.give_back(partial)
        self._release()

    # -- for subclasses

    def write_frames(self, parts: Sequence[Buffer]) -> None:
        """Send already framed bytes; the buffers now belong to the transport."""
        if not self.transport.is_closing():
            self.transport.writelines(parts)

    def stop_cutting(self) -> None:
        """Nothing that arrives from here on is looked at."""
        self._refused = True

    def memory_awaited(self, waits: bool) -> None:
        """A large frame waits for memory, or goes on: reading pauses meanwhile."""
        if waits:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def opened(self) -> None:
        """The connection is there."""

    def frame_received(self, frame: memoryview) -> None:
        """One whole frame, without its size field."""

    def batch_received(self) -> None:
        """All frames of one read were handed on."""

    def frame_refused(self, reason: str) -> None:
        """The size field is out of bounds; the stream cannot be followed any further."""
        self.transport.abort()

    def half_closed(self) -> bool:
        """The other side sent its last byte; True keeps our side open."""
        return False

    def closed(self) -> None:
        """The connection is gone."""
