"""Batches on their way into the active segment.

Small ones are copied and wait for the end of the loop's turn, so that many requests share one
write; a large one is written at once, in the same vectored call as those before it. Writes of a
partition complete in order. Where the disk is slow on command, every write waits so long, and the
loop goes on; what waits is at most TAIL_BYTES_MAX, or one batch. Where too many files are open
already (`OpenSegments`), writes wait for others to be closed, as much of them.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.log.files import Buffer, Files
from kwire.log.scheduling import Scheduler, Timer
from kwire.log.segment.segment import Segment
from kwire.pending import Pending

SMALL_BYTES = 16 * 1024
TAIL_BYTES_MAX = 256 * 1024


class WriteBuffer:
    """What a partition's active segment has assigned but not written."""

    __slots__ = (
        "_buffers",
        "_failed",
        "_files",
        "_is_scheduled",
        "_pending",
        "_segment",
        "_size_bytes",
        "_timer",
        "_urgent",
        "_written",
        "scheduler",
    )

    def __init__(
        self,
        failed: Callable[[OSError, list[Pending[None]], int], None],
        written: Callable[[list[Pending[None]]], None],
        scheduler: Scheduler,
        files: Files,
    ) -> None:
        self._files = files
        self._failed = failed
        self._written = written
        self.scheduler = scheduler
        self._buffers: list[Buffer] = []
        self._size_bytes = 0
        self._urgent = False
        self._is_scheduled = False
        self._timer: Timer | None = None
        self._pending: Pending[None] | None = None
        self._segment: Segment | None = None

    def __bool__(self) -> bool:
        return bool(self._buffers)

    def add(self, data: Buffer, is_owned: bool) -> None:
        """Take a batch; `is_owned` memory is not reused by anybody else."""
        size_bytes = len(data)
        self._size_bytes += size_bytes
        is_much = self._size_bytes >= TAIL_BYTES_MAX
        if self._files.write_delay_ms:
            is_urgent = is_much and bool(self._buffers)  # one that is alone waits, of any size
        else:
            is_urgent = is_much or size_bytes >= SMALL_BYTES
        if is_urgent:
            self._urgent = True
            self._buffers.append(data)
        else:
            self._buffers.append(data if is_owned else bytes(data))

    def waits_with(self, size_bytes: int) -> bool:
        """Whether a batch of this size would wait for the end of the turn."""
        return size_bytes < SMALL_BYTES and self._size_bytes + size_bytes < TAIL_BYTES_MAX

    @property
    def is_slow(self) -> bool:
        """Whether the disk is slow on command: nothing is written at once."""
        return bool(self._files.write_delay_ms)

    def pending(self) -> Pending[None]:
        """Completes with the next write."""
        if self._pending is None:
            self._pending = Pending()
        return self._pending

    def submit(self, segment: Segment) -> Pending[None]:
        """See to it that what was added gets written: now, or at the end of the turn."""
        pending = self.pending()
        self._segment = segment
        delay_ms = self._files.write_delay_ms
        if self._timer is not None and not delay_ms:  # the disk is slow no more
            self._end_timer()
        if self._urgent and (self._size_bytes >= TAIL_BYTES_MAX or not segment.must_wait):
            self.write(segment)
        elif not self._is_scheduled:
            self._is_scheduled = True
            if delay_ms:
                self._timer = self.scheduler.call_later(delay_ms, self._turn_ended)
            else:
                self.scheduler.call_soon(self._turn_ended)
        return pending

    def _turn_ended(self) -> None:
        self._timer, self._is_scheduled = None, False
        segment = self._segment
        if not self._buffers or segment is None:
            return
        if segment.must_wait:
            self._is_scheduled = True
            segment.wait(self._turn_ended)
        else:
            self.write(segment)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._is_scheduled = None, False

    def write(self, segment: Segment) -> None:
        """Write everything in one vectored call."""
        if not self._buffers:
            return
        self._end_timer()
        buffers, self._buffers = self._buffers, []
        pending, self._pending = self._pending, None
        self._size_bytes, self._urgent = 0, False
        waiting = [pending] if pending is not None else []
        try:
            segment.write(buffers)
        except OSError as error:
            self._failed(error, waiting, sum(map(len, buffers)))
        else:
            self._written(waiting)

    def write_alone(self, segment: Segment, data: Buffer) -> None:
        """`add` and `write` of one batch while nothing else waits, and the disk is not slow."""
        pending, self._pending = self._pending, None
        waiting = [pending] if pending is not None else []
        try:
            segment.write((data,))
        except OSError as error:
            self._failed(error, waiting, len(data))
        else:
            self._written(waiting)

    def discard(self, error: Exception) -> None:
        """Forget what was added; whoever waits for it gets `error`."""
        self._end_timer()
        self._buffers.clear()
        self._size_bytes, self._urgent = 0, False
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.fail(error)
