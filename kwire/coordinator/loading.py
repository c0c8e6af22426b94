"""Builds a shard from its partition's log, in slices between which the loop turns.

A short log is replayed record by record. A longer one is first reduced to the records that count
(`reduction.py`), which costs a tenth of replaying them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kwire.coordinator import batches
from kwire.coordinator.reduction import LogReduction
from kwire.coordinator.seam import CoordinatorLog, Loop, Shard
from kwire.pending import Pending

# A slice ends after this long or this many steps (time does not pass within a callback of a
# simulated loop).
SLICE_MS = 5
SLICE_STEPS_MAX = 2000
STEPS_PER_CLOCK_LOOK = 32
# A log with more records than this is reduced.
REPLAYED_MAX = 5000


class Loading:
    """One attempt to load one partition. `finished(end_offset)` or `failed(error)` is called,
    neither after `cancel`."""

    def __init__(
        self,
        shard: Shard,
        partition: int,
        *,
        module: str,
        partition_log: CoordinatorLog,
        loop: Loop,
        bytes_max: int,
        finished: Callable[[int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._shard = shard
        self._partition = partition
        self._module = module
        self._log = partition_log
        self._loop = loop
        self._bytes_max = bytes_max
        self._finished = finished
        self._failed = failed
        self._cancelled = False
        self._reduction: LogReduction | None = None
        loop.call_soon(lambda: self._guarded(self._begin))

    def cancel(self) -> None:
        """Nothing more happens."""
        self._cancelled = True

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._cancelled:
            return
        try:
            action()
        except Exception as error:
            self._cancelled = True
            self._failed(error)

    def _begin(self) -> None:
        start = self._log.start_offset(self._partition)
        if self._log.end_offset(self._partition) - start > REPLAYED_MAX:
            self._reduction = LogReduction()
        self._read(start)

    def _read(self, offset: int) -> None:
        if offset >= self._log.end_offset(self._partition):
            self._at_end(offset)
            return
        answer = self._log.read(self._partition, offset, self._bytes_max)
        if isinstance(answer, Pending):
            answer.add_done_callback(
                lambda done: self._guarded(lambda: self._take(done.result(), offset))
            )
        else:
            self._take(answer, offset)

    def _take(self, buffers: list[Any], offset: int) -> None:
        steps: Iterator[int]
        if self._reduction is not None:
            steps = self._reduction.steps(b"".join(buffers), offset)
        else:
            data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
            steps = batches.replay_steps(self._shard, self._module, memoryview(data), offset)

        def then(reached: int) -> None:
            if reached == offset:
                raise ValueError(f"no batch at offset {offset}")
            self._read(reached)

        self._in_slices(steps, offset, then)

    def _at_end(self, end_offset: int) -> None:
        if self._reduction is None:
            self._finish(end_offset)
            return
        steps = self._reduction.replay_steps(self._shard, self._module)
        self._reduction = None
        self._in_slices(steps, end_offset, lambda _: self._finish(end_offset))

    def _finish(self, end_offset: int) -> None:
        self._cancelled = True
        self._finished(end_offset)

    def _in_slices(self, steps: Iterator[int], reached: int, then: Callable[[int], None]) -> None:
        """Run `steps` to their end, then go on with what they reached in a turn of its own."""
        ends_at = self._loop.time() + SLICE_MS / 1000
        paused = False
        for count, next_offset in enumerate(steps, 1):
            reached = next_offset
            # Steps of a reduction are long, hence few.
            look = self._reduction is not None or count % STEPS_PER_CLOCK_LOOK == 0
            if count >= SLICE_STEPS_MAX or (look and self._loop.time() >= ends_at):
                paused = True
                break
        if paused:
            self._loop.call_soon(
                lambda: self._guarded(lambda: self._in_slices(steps, reached, then))
            )
        else:
            self._loop.call_soon(lambda: self._guarded(lambda: then(reached)))
