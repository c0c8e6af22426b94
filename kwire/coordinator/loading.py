"""Builds a shard from its partition's log, in slices between which the loop turns.

A short log is replayed record by record. A longer one whose last record of a key says all is first
reduced to the records that count (`reduction.py`): in a thread where there is one and the kernels
are compiled, going through the log twice, else once and in slices, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.coordinator import batches
from kwire.coordinator.reduction import LogReduction
from kwire.coordinator.shard_interface import Buffer, CoordinatorLog, Loop, Shard
from kwire.pending import Pending
from kwire.protocol.records.compaction_kernel import COMPILED, OffsetMap

logger = logging.getLogger(__name__)

# A slice ends after this long or this many steps (time does not pass within a callback of a
# simulated loop).
SLICE_MS = 5
SLICE_STEPS_MAX = 2000
STEPS_PER_CLOCK_READ = 32
# A log with more records than this is reduced.
REPLAYED_MAX = 5000
# Those whose last record of a key says all. An update of a share partition has what changed alone:
# its log is kept short by snapshots and deletions instead.
REDUCED_MODULES = ("group-coordinator", "transaction-coordinator")
# Memory of the map of last offsets: 24 bytes a key, a bit more than twice that while it is empty.
MAP_BYTES_PER_RECORD = 50
MAP_BYTES_MAX = 128 * 1024 * 1024


class GoneThrough(NamedTuple):
    """What a thread did: the next offset, and the offsets of the batches that it left out."""

    reached: int
    damaged: list[int]


Job = Callable[[], GoneThrough]


class Worker(NamedTuple):
    """A thread for compiled work: `run` a job there; `seed` of 16 bytes that nobody can guess."""

    run: Callable[[Job], Pending[GoneThrough]]
    seed: Callable[[], bytes]


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
        worker: Worker | None = None,
    ) -> None:
        self._worker = worker if COMPILED else None
        self._is_indexing = False
        self._shard = shard
        self._partition = partition
        self._module = module
        self._log = partition_log
        self._loop = loop
        self._bytes_max = bytes_max
        self._finished = finished
        self._failed = failed
        self._cancelled = False
        self._damaged: dict[int, None] = {}  # offsets of the batches that were named
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
            logger.error(
                "partition %d of the %s cannot be loaded: %s", self._partition, self._module, error
            )
            self._failed(error)

    def _begin(self) -> None:
        start = self._log.start_offset(self._partition)
        records = self._log.end_offset(self._partition) - start
        if records > REPLAYED_MAX and self._module in REDUCED_MODULES:
            offsets = None
            if self._worker is not None:
                size_bytes = min(MAP_BYTES_PER_RECORD * records, MAP_BYTES_MAX)
                offsets = OffsetMap(size_bytes, self._worker.seed())
            self._reduction = LogReduction(offsets)
            self._is_indexing = offsets is not None
        self._read(start)

    def _read(self, offset: int) -> None:
        if offset >= self._log.end_offset(self._partition):
            if self._is_indexing:
                self._is_indexing = False
                self._read(self._log.start_offset(self._partition))
            else:
                self._at_end(offset)
            return
        answer = self._log.read(self._partition, offset, self._bytes_max)
        if isinstance(answer, Pending):
            answer.add_done_callback(
                lambda done: self._guarded(lambda: self._take(done.result(), offset))
            )
        else:
            self._take(answer, offset)

    def _take(self, buffers: list[Buffer], offset: int) -> None:
        if not buffers and self._damaged:
            self._read(self._log.end_offset(self._partition))  # the last batch is damaged
            return
        reduction = self._reduction
        if reduction is not None and self._worker is not None:
            go_through = reduction.index if self._is_indexing else reduction.take
            job = self._worker.run(lambda: _go_through_undamaged(buffers, offset, go_through))
            job.add_done_callback(
                lambda done: self._guarded(lambda: self._gone_through(done.result(), offset))
            )
            return
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        found = batches.undamaged(data, offset)
        self._log_damaged(found.damaged)
        steps: Iterator[int]
        if reduction is not None:
            steps = reduction.steps(bytes(found.data), offset)
        else:
            steps = batches.replay_steps(self._shard, self._module, memoryview(found.data), offset)
        passed = offset if not found.reached else found.reached
        self._in_slices(steps, offset, lambda reached: self._go_on(max(reached, passed), offset))

    def _gone_through(self, done: GoneThrough, offset: int) -> None:
        self._log_damaged(done.damaged)
        self._go_on(done.reached, offset)

    def _log_damaged(self, damaged: list[int]) -> None:
        """Say once of each batch that it is left out: nothing may take its place unnoticed."""
        for base_offset in damaged:
            if base_offset not in self._damaged:
                self._damaged[base_offset] = None
                logger.error(
                    "partition %d of the %s: the checksum of the batch at offset %d does not hold; "
                    "its records are left out, and older ones may count in their place",
                    self._partition,
                    self._module,
                    base_offset,
                )

    def _go_on(self, reached: int, offset: int) -> None:
        if reached <= offset:
            raise ValueError(f"no batch at offset {offset}")
        self._read(min(reached, self._log.end_offset(self._partition)))

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
            reads_clock = self._reduction is not None or count % STEPS_PER_CLOCK_READ == 0
            if count >= SLICE_STEPS_MAX or (reads_clock and self._loop.time() >= ends_at):
                paused = True
                break
        if paused:
            self._loop.call_soon(
                lambda: self._guarded(lambda: self._in_slices(steps, reached, then))
            )
        else:
            self._loop.call_soon(lambda: self._guarded(lambda: then(reached)))


def _go_through_undamaged(
    buffers: list[Buffer], offset: int, go_through: Callable[[bytes, int], int]
) -> GoneThrough:
    """The job of the thread. Damaged batches are logged in the loop: a thread keeps no state."""
    found = batches.undamaged(b"".join(buffers), offset)
    reached = go_through(bytes(found.data), offset)
    return GoneThrough(max(reached, found.reached), found.damaged)
