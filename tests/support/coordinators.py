"""A loop whose time the test sets, and a log whose high watermark lags as the test likes.

What a CoordinatorRuntime needs, without a broker: `ManualLoop`, `MemoryLog`, `ManualClock`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from kwire.coordinator.shard_interface import Moment, Result
from kwire.log.types import AppendInfo
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import parse_header, stamp
from kwire.protocol.records.build import MadeBatch


class Handle:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualLoop:
    """call_at, call_soon, time; `run` and `advance` do what is due, in order."""

    def __init__(self, start_ms: int = 1_000) -> None:
        self.now_ms = start_ms
        self._order = 0
        self._due: list[tuple[float, int, Handle]] = []

    def time(self) -> float:
        return self.now_ms / 1000

    def call_at(self, when: float, callback: Callable[[], None]) -> Handle:
        self._order += 1
        handle = Handle(callback)
        heapq.heappush(self._due, (when, self._order, handle))
        return handle

    def call_soon(self, callback: Callable[[], None]) -> Handle:
        return self.call_at(0.0, callback)

    def run(self) -> None:
        """Everything that is due now, and what that makes due."""
        while self._due and self._due[0][0] * 1000 <= self.now_ms + 1e-6:
            handle = heapq.heappop(self._due)[2]
            if handle.callback is not None:
                handle.callback()

    def advance(self, by_ms: int) -> None:
        """Let `by_ms` pass, stopping at each deadline on the way."""
        end_ms = self.now_ms + by_ms
        while self._due and self._due[0][0] * 1000 <= end_ms:
            self.now_ms = max(self.now_ms, round(self._due[0][0] * 1000))
            self.run()
        self.now_ms = end_ms
        self.run()


class ManualClock:
    """Wall clock beside the loop's time."""

    def __init__(self, loop: ManualLoop, epoch_ms: int = 1_700_000_000_000) -> None:
        self._loop = loop
        self._epoch_ms = epoch_ms

    def wall_ms(self) -> int:
        return self._epoch_ms + self._loop.now_ms


class MemoryLog:
    """A CoordinatorLog in memory. With `lagging` the high watermark moves only by `commit`."""

    def __init__(self, *, lagging: bool = False, bytes_max: int = 1_048_588) -> None:
        self.lagging = lagging
        self.bytes_max = bytes_max
        self.batches: dict[int, list[bytearray]] = {}
        self.ends: dict[int, int] = {}
        self.high_watermarks: dict[int, int] = {}
        self.refuse: ErrorCode | None = None
        # Refuses appends, which `check_append` does not know of before.
        self.refuse_appends: ErrorCode | None = None
        self.refuse_reads: Exception | None = None
        # What `written` of the next appends becomes; None: done at once.
        self.hold_writes = False
        self.held_writes: list[Pending[None]] = []
        self.read_later: list[tuple[Pending[Any], list[bytes]]] | None = None
        self.listener: Callable[[int, int], None] = lambda partition, offset: None

    def append(
        self,
        partition: int,
        batch: bytearray,
        leader_epoch: int,
        guard: object = None,
        transaction_version: int = 0,
        at_once: bool = False,
    ) -> AppendInfo:
        refused = self.refuse or self.refuse_appends
        if refused is not None:
            raise KafkaError(refused)
        base = self.ends.get(partition, 0)
        header = parse_header(batch)
        stamp(batch, 0, base, leader_epoch)
        self.batches.setdefault(partition, []).append(batch)
        last = base + header.last_offset_delta
        self.ends[partition] = last + 1
        written: Pending[None] = Pending()
        if self.hold_writes:
            self.held_writes.append(written)
        else:
            written.complete(None)
            if not self.lagging:
                self.commit(partition)
        return AppendInfo(base, last, -1, 0, written)

    def append_made(self, partition: int, made: MadeBatch) -> bool:
        if self.hold_writes or made.header.base_offset != self.ends.get(partition, 0):
            return False
        self.append(partition, bytearray(made.data), made.header.partition_leader_epoch)
        return True

    def check_append(self, partition: int, leader_epoch: int) -> tuple[int, int]:
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        return self.ends.get(partition, 0), self.bytes_max

    def commit(self, partition: int, offset: int | None = None) -> None:
        """Move the high watermark to `offset`, by default to the log's end."""
        end = self.ends.get(partition, 0)
        offset = end if offset is None else min(offset, end)
        if offset > self.high_watermarks.get(partition, 0):
            self.high_watermarks[partition] = offset
            self.listener(partition, offset)

    def commit_all(self) -> None:
        for partition in sorted(self.ends):
            self.commit(partition)

    def truncate(self, partition: int) -> None:
        """Lose what is not committed, as a leader that comes back does."""
        high_watermark = self.high_watermarks.get(partition, 0)
        kept = [
            x
            for x in self.batches.get(partition, [])
            if parse_header(x).next_offset <= high_watermark
        ]
        self.batches[partition] = kept
        self.ends[partition] = parse_header(kept[-1]).next_offset if kept else 0

    def read(self, partition: int, offset: int, bytes_max: int) -> Any:
        if self.refuse_reads is not None:
            raise self.refuse_reads
        found: list[bytes] = []
        size = 0
        for batch in self.batches.get(partition, []):
            if parse_header(batch).next_offset <= offset:
                continue
            if found and size + len(batch) > bytes_max:
                break
            found.append(bytes(batch))
            size += len(batch)
        if self.read_later is not None:
            pending: Pending[Any] = Pending()
            self.read_later.append((pending, found))
            return pending
        return found

    def start_offset(self, partition: int) -> int:
        return 0

    def end_offset(self, partition: int) -> int:
        return self.ends.get(partition, 0)

    def high_watermark(self, partition: int) -> int:
        return self.high_watermarks.get(partition, 0)

    def batch_bytes_max(self, partition: int) -> int:
        return self.bytes_max


def open_batches(runtime: Any, partition: int = 0) -> list[bytearray]:
    """The batch of a runtime's partition that is not appended yet, as it will stand in the log."""
    current = runtime._partitions.get(partition)
    if current is None or current.batch is None:
        return []
    batch: bytearray = current.batch.build(0)
    stamp(batch, 0, current.batch.base_offset, current.leader_epoch)
    return [batch]


class PassiveShard:
    """What a shard of the runtime has to have, for one that only replays: no timers, no replies."""

    def replay_marker(self, *_: Any) -> None:
        """Markers change nothing."""

    def loaded(self, moment: Moment) -> Result[None]:
        return Result()

    def timers(self) -> int | None:
        return None

    def expire(self, moment: Moment) -> Result[None] | None:
        return None

    def take_replies(self) -> list[tuple[Pending[Any], Any]]:
        return []

    def discard(self) -> list[Pending[Any]]:
        return []
