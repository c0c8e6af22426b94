"""Memory for received bytes: one shared receive buffer per loop, pooled buffers for partial frames.

A view of a buffer may be kept beyond the callback that received it (a log that writes later, a
queued request). Whoever does so takes the buffer over: the pool notices that views of it are still
alive, lets it go, and takes a fresh one. Memory that somebody sees is therefore never written
again (DESIGN.md, memory seam).
"""

from __future__ import annotations

from collections.abc import Callable

RECEIVE_BUFFER_BYTES = 256 * 1024
LARGE_RECEIVE_BYTES_MAX = 4 * 1024 * 1024
SMALL_FRAME_BYTES = 16 * 1024
FIRST_ALLOCATION_BYTES = 256 * 1024
POOLED_SIZES = (64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024, 16 * 1024 * 1024)
POOLED_BYTES_MAX = 32 * 1024 * 1024
RESERVED_FROM_BYTES = 1024 * 1024
RESERVED_BYTES_MAX = 1024 * 1024 * 1024


def is_kept(buffer: bytearray) -> bool:
    """Whether a view of `buffer` is still alive somewhere (CPython refuses to resize it then)."""
    try:
        buffer.append(0)
    except BufferError:
        return True
    buffer.pop()
    return False


class ReceiveBudget:
    """What all connections together may hold of large frames that are not complete.

    A frame reserves its whole size before it grows beyond `RESERVED_FROM_BYTES`, so that those
    that were admitted can be completed; the others wait, in order, and are not read meanwhile. A
    frame larger than the budget is admitted when nothing else is.
    """

    def __init__(self, bytes_max: int = RESERVED_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.reserved_bytes = 0
        self._waiting: dict[Callable[[], None], int] = {}

    def reserve(self, wanted_bytes: int, granted: Callable[[], None]) -> bool:
        """Whether it may go on now; else `granted()` is called once it may."""
        if not self._waiting and self._fits(wanted_bytes):
            self.reserved_bytes += wanted_bytes
            return True
        self._waiting[granted] = wanted_bytes
        return False

    def _fits(self, wanted_bytes: int) -> bool:
        return self.reserved_bytes == 0 or self.reserved_bytes + wanted_bytes <= self.bytes_max

    def release(self, reserved_bytes: int) -> None:
        """A frame is complete, or its connection gone."""
        self.reserved_bytes -= reserved_bytes
        while self._waiting:
            granted, wanted_bytes = next(iter(self._waiting.items()))
            if not self._fits(wanted_bytes):
                return
            del self._waiting[granted]
            self.reserved_bytes += wanted_bytes
            granted()

    def forget(self, granted: Callable[[], None]) -> None:
        """Who waited is gone."""
        if self._waiting.pop(granted, None) is not None:
            self.release(0)


class BufferPool:
    """The receive buffers of one event loop.

    `shared()` is what every connection without a partial frame receives into; `take` and
    `give_back` lend buffers to connections that hold a partial frame. Whether somebody has kept a
    view is looked at when memory is about to be used again: during `buffer_updated` the loop
    itself holds one.
    """

    def __init__(self, reserved_bytes_max: int = RESERVED_BYTES_MAX) -> None:
        self.budget = ReceiveBudget(reserved_bytes_max)
        self.replaced = 0
        self._shared = bytearray(RECEIVE_BUFFER_BYTES)
        self._large = bytearray()
        self.received = self._shared
        """The buffer that the last read went into."""
        self._returned: list[bytearray] = []
        self._free: dict[int, list[bytearray]] = {size: [] for size in POOLED_SIZES}
        self._free_bytes = 0

    def shared(self, expected_bytes: int = 0) -> bytearray:
        """The buffer for the next read; another one when views of the last are alive.

        With `expected_bytes` beyond its size a larger one, which may be claimed for the frame that
        was read into it.
        """
        if expected_bytes > RECEIVE_BUFFER_BYTES:
            large = self._large
            if len(large) < expected_bytes or is_kept(large):
                large = self._large = self.take(expected_bytes, expected_bytes)
            self.received = large
            return large
        shared = self._shared
        try:  # is_kept, which is asked for every read
            shared.append(0)
            shared.pop()
        except BufferError:
            shared = self._shared = bytearray(RECEIVE_BUFFER_BYTES)
            self.replaced += 1
        self.received = shared
        return shared

    def claim(self, wanted_bytes: int, held_bytes: int) -> bytearray | None:
        """The large buffer of the last read, for a frame that begins at its start, as if it came
        from `take`; None when the last read went elsewhere, or the frame is larger, or too little
        of it has arrived to hold so much memory for it."""
        large = self._large
        if self.received is not large or not wanted_bytes <= len(large) <= 4 * held_bytes:
            return None
        self._large = bytearray()
        return large

    def take(self, wanted_bytes: int, held_bytes: int = 0) -> bytearray:
        """A buffer for a frame of `wanted_bytes` of which `held_bytes` have arrived.

        It may be smaller than the frame: what was only announced is allocated as it arrives.
        """
        if wanted_bytes <= SMALL_FRAME_BYTES:
            return bytearray(wanted_bytes)
        if self._returned:
            self._sort_returned()
        for size in POOLED_SIZES:
            if size >= wanted_bytes and self._free[size]:
                return self._pop(size)
        granted = min(wanted_bytes, max(FIRST_ALLOCATION_BYTES, 4 * held_bytes))
        for size in POOLED_SIZES:
            if size >= granted:
                return self._pop(size) if self._free[size] else bytearray(size)
        return bytearray(granted)

    def give_back(self, buffer: bytearray) -> None:
        """Return a buffer of `take`; it is dropped if a view of it is kept at the next one."""
        if len(buffer) in self._free:
            self._returned.append(buffer)

    def _pop(self, size: int) -> bytearray:
        self._free_bytes -= size
        return self._free[size].pop()

    def _sort_returned(self) -> None:
        returned, self._returned = self._returned, []
        for buffer in returned:
            size = len(buffer)
            if self._free_bytes + size <= POOLED_BYTES_MAX and not is_kept(buffer):
                self._free[size].append(buffer)
                self._free_bytes += size
