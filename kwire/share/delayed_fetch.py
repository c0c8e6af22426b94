"""A share fetch from its beginning to its end: what is free is read and acquired, or waited for.

Partitions that may have something are read in the order they are asked for, but those last whose
first free offset no fetch has looked at before; at the deadline that does not count. They share one
limit of bytes evenly with those that have nothing now, and their records are acquired until there
are enough. With nothing to
acquire, or fewer than `bytes_min` bytes, it waits: for the high watermark or the last stable
offset, for records that are given back, for a partition to open. At its deadline it takes what
there is. A partition that another share fetch is reading is as one without records. What was
read beyond what is acquired is not handed out. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.log.scheduling import Timer
from kwire.log.types import COMMITTED, HIGH_WATERMARK, READ_COMMITTED
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.bounded_read import BoundedRead, ReadTarget
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import Acquired, FetchedBatch
from kwire.share.counts import ShareCounts
from kwire.share.led_partition import Deadlines, LedPartition
from kwire.share.read_batches import Data, cut, headers, kept

MAY_PASS = (ErrorCode.OFFSET_OUT_OF_RANGE,)
"""The log begins later now: the next try knows."""


class Limits:
    """What a share fetch allows: time, bytes; `as_files` as `ReadLimits` has it."""

    __slots__ = ("as_files", "bytes_max", "bytes_min", "wait_ms")

    def __init__(
        self, wait_ms: int, bytes_min: int, bytes_max: int, as_files: bool = False
    ) -> None:
        self.as_files = as_files
        self.wait_ms = wait_ms
        self.bytes_min = bytes_min
        self.bytes_max = bytes_max


class ShareTarget:
    """A partition of a share fetch, and what its member got there. As a `ReadRequest` it is what is
    read."""

    __slots__ = (
        "acquired",
        "buffers",
        "current_leader_epoch",
        "error",
        "fetch_offset",
        "is_looked_at",
        "last_fetched_epoch",
        "led",
        "log_start_offset",
        "member_id",
        "partition_bytes_max",
        "size_bytes",
    )

    def __init__(self, led: LedPartition, member_id: str) -> None:
        self.led = led
        self.member_id = member_id
        self.fetch_offset = 0
        self.is_looked_at = False  # whether the last try could have acquired of it
        self.current_leader_epoch = led.leader_epoch
        self.last_fetched_epoch = -1
        self.log_start_offset = -1
        self.partition_bytes_max = 0
        self.error: KafkaError | None = None
        self.buffers: Data = []
        self.size_bytes = 0
        self.acquired: list[Acquired] = []

    def keep(self) -> None:
        """The answer does not leave in this turn of the loop: let no file be needed by then."""
        try:
            self.buffers = kept(self.buffers)
        except OSError:
            self.give_back()
            self.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def give_back(self) -> None:
        """The member does not get what was acquired for it: that was no delivery."""
        for given in self.acquired:
            self.led.state.give_back(self.member_id, given)
        self.acquired, self.buffers, self.size_bytes = [], [], 0
        self.led.wake()


class DelayedShareFetch:
    """See the module. `start()`; then `done()` is called, maybe before it returns."""

    __slots__ = (
        "_ask",
        "_counts",
        "_deadline",
        "_deadlines",
        "_done",
        "_is_expired",
        "_is_last",
        "_is_over",
        "_limits",
        "_now_ms",
        "_read",
        "_reading",
        "_seen",
        "_targets",
        "_total_bytes",
        "_unread",
        "_waits",
    )

    def __init__(
        self,
        targets: Sequence[ShareTarget],
        ask: Ask,
        limits: Limits,
        deadlines: Deadlines,
        now_ms: Callable[[], int],
        counts: ShareCounts,
        done: Callable[[], None],
    ) -> None:
        self._targets = targets
        self._ask = ask
        self._limits = limits
        self._deadlines = deadlines
        self._now_ms = now_ms
        self._counts = counts
        self._done = done
        self._deadline: Timer | None = None
        self._is_last = limits.wait_ms <= 0
        self._is_expired = False
        self._is_over = False
        self._waits = False
        self._read: BoundedRead[ShareTarget] | None = None
        self._reading: list[ReadTarget[ShareTarget]] = []
        self._unread: list[list[ReadTarget[ShareTarget]]] = []
        self._total_bytes = 0
        self._seen: list[tuple[int, int, int, bool]] = []  # where a read found too little

    def start(self) -> None:
        """Try once, and wait if nothing comes of it."""
        self._try()

    def cancel(self) -> None:
        """Nobody wants the records any more; `done` will not be called."""
        self._is_over = True
        self._stop_waiting()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._read is not None:
            self._read.cancel()
            self._read = None
            self._let_others_read()

    def woken(self) -> None:
        """See `led_partition.Waiter`."""
        if not self._waits:
            return
        if self._seen and not self._is_last and self._seen == self._positions():
            return  # there was not enough, and there is no more now
        self._seen = []
        self._stop_waiting()
        self._try()

    # -- one try

    def _try(self) -> None:
        ends = False
        count = 0
        seen: list[ReadTarget[ShareTarget]] = []
        unseen: list[ReadTarget[ShareTarget]] = []
        for target in self._targets:
            led = target.led
            if led.failure is not None:
                target.error = led.failure
                ends = True
                continue
            has_records = led.has_records()
            target.is_looked_at = not led.is_fetching and led.state.can_acquire()
            if not target.is_looked_at:
                continue
            count += 1
            offset = led.state.next_fetch_offset()
            reads = seen if led.seen_offset == offset or self._is_expired else unseen
            if self._ask.records_max > 0:
                led.seen_offset = offset
            if has_records:
                led.is_fetching = True
                target.fetch_offset = offset
                reads.append(ReadTarget(led.partition, target))
        self._reading = seen + unseen
        if not self._reading:
            if ends or self._is_last:
                self._finish()
            else:
                self._wait()
            return
        for reading in self._reading:
            target = reading.request
            target.partition_bytes_max = min(
                self._limits.bytes_max // count,
                max(
                    self._limits.bytes_min,
                    target.led.bytes_for(target.fetch_offset, self._ask.records_max),
                ),
            )
        self._total_bytes = 0
        self._unread = [reads for reads in (unseen, seen) if reads]
        self._read_next()

    def _read_next(self) -> None:
        """Read what no fetch has looked at before, then the rest: each has the limit of bytes for
        itself, as in Apache Kafka 4.4."""
        reads = self._unread.pop(0)
        isolation_level = reads[0].request.led.state.settings.isolation_level
        limits = ReadLimits(
            bytes_min=0,
            bytes_max=self._limits.bytes_max,
            wait_ms=0,
            isolation=COMMITTED if isolation_level == READ_COMMITTED else HIGH_WATERMARK,
            as_files=self._limits.as_files,
        )
        self._read = read = BoundedRead(reads, limits, self._found)
        read.run()

    def _found(self, read: BoundedRead[ShareTarget]) -> None:
        self._read = None
        if self._is_over:
            self._let_others_read()
            return
        self._total_bytes += read.total_bytes
        if self._unread:
            self._read_next()
            return
        is_enough = self._is_last or self._total_bytes >= self._limits.bytes_min
        ends = False
        left = self._ask.records_max
        for reading in self._reading:
            target, result = reading.request, reading.result
            if result.error_code:
                ends |= self._failed(target, result)
            elif target.led.failure is not None:
                target.error = target.led.failure
                ends = True
            elif is_enough and left > 0 and result.size_bytes:
                left -= self._acquire(target, result, left)
        tried = [reading.request for reading in self._reading]
        self._let_others_read()
        if left < self._ask.records_max or ends or self._is_last:
            self._finish()
            return
        self._seen = self._positions()
        self._wait()
        for target in tried:
            if target.led.state.next_fetch_offset() != target.fetch_offset:
                target.led.wake()  # nothing of what was read is for anybody: look further

    def _positions(self) -> list[tuple[int, int, int, bool]]:
        """What a read depends on."""
        return [
            (
                target.led.state.next_fetch_offset(),
                log.high_watermark,
                log.last_stable_offset,
                target.led.failure is None,
            )
            for target in self._targets
            if (log := target.led.partition.log) is not None
        ]

    def _let_others_read(self) -> None:
        for reading in self._reading:
            reading.request.led.fetched()
        self._reading = []

    def _failed(self, target: ShareTarget, result: ReadResult) -> bool:
        """Whether an error of reading ends the wait."""
        if result.error_code in MAY_PASS:
            log = target.led.partition.log
            if log is not None:
                target.led.state.log_starts_at(log.log_start_offset)
            return False
        target.error = KafkaError(result.error_code)
        return True

    def _acquire(self, target: ShareTarget, result: ReadResult, records_max: int) -> int:
        """Acquire of what was read; how many records."""
        led = target.led
        buffers = list(result.buffers or ())
        try:
            fetched = self._headers(target, buffers, records_max)
        except OSError:
            target.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            return 0
        led.was_read(fetched)
        acquired = acquire(
            led.state,
            self._ask._replace(records_max=records_max),
            target.fetch_offset,
            fetched,
            self._now_ms(),
            result.aborted or (),
        )
        if not acquired:
            return 0
        led.locks_changed()
        target.acquired = acquired
        target.buffers, target.size_bytes = cut(
            buffers, fetched, acquired[0].first_offset, acquired[-1].last_offset
        )
        return sum(given.last_offset - given.first_offset + 1 for given in acquired)

    @staticmethod
    def _headers(target: ShareTarget, buffers: Data, records_max: int) -> list[FetchedBatch]:
        """Of the batches that may be needed: those in flight, and the new ones up to the limit."""
        begin = max(target.fetch_offset, target.led.state.end_offset)
        fetched = headers(buffers, begin + records_max - 1)
        if fetched and fetched[0].base_offset > begin:  # the log has nothing between
            fetched = headers(buffers, fetched[0].base_offset + records_max - 1)
        return fetched

    # -- waiting

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self._deadlines.add(self._limits.wait_ms, self._expired)
        self._waits = True
        for target in self._targets:
            target.led.wait(self, self._ask.member_id)

    def _stop_waiting(self) -> None:
        if self._waits:
            self._waits = False
            for target in self._targets:
                target.led.stop_waiting(self)

    def _expired(self) -> None:
        self._deadline = None
        self._counts.expired_fetches += 1
        self._is_last = self._is_expired = True
        self.woken()

    def _finish(self) -> None:
        self._is_over = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        is_served = any(target.acquired for target in self._targets)
        if is_served or self._is_last:
            for target in self._targets:
                target.led.waited(self._ask.member_id, is_served)
        self._done()
