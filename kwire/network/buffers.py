"""Memory for received bytes: one shared receive buffer per loop, pooled buffers for partial frames.

A view of a buffer may be kept beyond the callback that received it (a log that writes later, a
queued request). Whoever does so takes the buffer over: the pool notices that views of it are still
alive, lets it go, and takes a fresh one. Memory that somebody sees is therefore never written
again (DESIGN.md, memory seam).
"""

from __future__ import annotations

RECEIVE_BUFFER_BYTES = 256 * 1024
SMALL_FRAME_BYTES = 16 * 1024
FIRST_ALLOCATION_BYTES = 256 * 1024
POOLED_SIZES = (64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024, 16 * 1024 * 1024)
POOLED_BYTES_MAX = 32 * 1024 * 1024
POISON = 0xDB


def is_kept(buffer: bytearray) -> bool:
    """Whether a view of `buffer` is still alive somewhere (CPython refuses to resize it then)."""
    try:
        buffer.append(0)
    except BufferError:
        return True
    buffer.pop()
    return False


class BufferPool:
    """The receive buffers of one event loop.

    `shared` is what every connection without a partial frame receives into; call `used()` after
    each use. `take`/`give_back` lend buffers to connections that hold a partial frame.
    `poison=True` overwrites what is given back, so that a view kept without ownership shows up
    (simulation and tests).
    """

    def __init__(self, *, poison: bool = False) -> None:
        self.shared = bytearray(RECEIVE_BUFFER_BYTES)
        self.poison = poison
        self.replaced = 0
        self._free: dict[int, list[bytearray]] = {size: [] for size in POOLED_SIZES}
        self._free_bytes = 0

    def used(self, used_bytes: int) -> None:
        """The callback that received `used_bytes` into `shared` is over."""
        if is_kept(self.shared):
            self.shared = bytearray(RECEIVE_BUFFER_BYTES)
            self.replaced += 1
        elif self.poison:
            self.shared[:used_bytes] = bytes((POISON,)) * used_bytes

    def take(self, wanted_bytes: int, held_bytes: int = 0) -> bytearray:
        """A buffer for a frame of `wanted_bytes` of which `held_bytes` have arrived.

        It may be smaller than the frame: what was only announced is allocated as it arrives.
        """
        if wanted_bytes <= SMALL_FRAME_BYTES:
            return bytearray(wanted_bytes)
        for size in POOLED_SIZES:
            if size >= wanted_bytes and self._free[size]:
                self._free_bytes -= size
                return self._free[size].pop()
        granted = min(wanted_bytes, max(FIRST_ALLOCATION_BYTES, 4 * held_bytes))
        for size in POOLED_SIZES:
            if size >= granted:
                if self._free[size]:
                    self._free_bytes -= size
                    return self._free[size].pop()
                return bytearray(size)
        return bytearray(granted)

    def give_back(self, buffer: bytearray) -> None:
        """Return a buffer of `take`; it is dropped when a view of it is kept."""
        size = len(buffer)
        free = self._free.get(size)
        if free is None or self._free_bytes + size > POOLED_BYTES_MAX or is_kept(buffer):
            return
        if self.poison:
            buffer[:] = bytes((POISON,)) * size
        free.append(buffer)
        self._free_bytes += size
