"""Handing out records of a share partition that were read from the log.

Two modes (KIP-1206): BATCH_OPTIMIZED gives whole record batches, so that it may go beyond the
number asked for, in ranges of about `batch_size`; RECORD_LIMIT gives no more than asked for.
Records that have been delivered often are handed out in smaller and smaller parts of their batch,
and one on its last attempt alone, so that a record that kills its consumers takes no others with
it. What is free and not in the log any more is archived. Source: KIP-932, KIP-1206; measured on
Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.share.changes import Acquired, AcquireMode, FetchedBatch
from kwire.share.in_flight import InFlightBatch, RecordStatus
from kwire.share.partition import SharePartition
from kwire.share.states import ACQUIRED, AVAILABLE

LIMIT_WITHOUT_LAST_ATTEMPT = 2
"""With no more deliveries than that each would be the last attempt or the first."""

WHOLE_BATCH_MAX = 30_000
"""So many offsets of a record batch are handed out beyond the number asked for, to give it whole:
what is in flight may get a state each, of 20 bytes, and a snapshot of all of them has to fit into a
record of `__share_group_state` (1 MB), or no acknowledgement can be written any more. Apache Kafka
4.4 has no bound; a batch of 1 MB may have millions of records.
"""
SPLIT_MAX = 10_000
"""A larger batch of a state that was read is cut before its records get states of their own."""

AbortedTransaction = tuple[int, int]
"""(producer id, first offset)."""


class Ask(NamedTuple):
    """What a member may get: about `batch_size` offsets a range, `records_max` in all."""

    member_id: str
    mode: AcquireMode
    batch_size: int
    records_max: int


def acquire(
    partition: SharePartition,
    ask: Ask,
    fetch_offset: int,
    fetched: Sequence[FetchedBatch],
    now_ms: int,
    aborted: Sequence[AbortedTransaction] = (),
) -> list[Acquired]:
    """Give a member what is free of `fetched`, the record batches that were read at `fetch_offset`.

    Records of aborted transactions are archived and not among the result; offsets without a record
    are, whoever gets them says so in its acknowledgement.
    """
    if not partition.is_active or ask.records_max <= 0 or not fetched:
        return []
    if fetched[-1].last_offset < partition.start_offset:
        return []
    last, count_max = _limits(partition, ask, fetch_offset, fetched[-1].last_offset)
    if count_max <= 0:
        return []
    base = fetched[0].base_offset
    if fetch_offset < base and partition.archive(fetch_offset, base - 1, AVAILABLE):
        partition.move_start()
    acquisition = _Acquisition(partition, ask, fetched, now_ms)
    acquisition.run(max(base, partition.start_offset), last, count_max)
    if not aborted:
        return acquisition.acquired
    return _without_aborted(partition, acquisition.acquired, fetched, aborted)


def _limits(partition: SharePartition, ask: Ask, fetch_offset: int, last: int) -> tuple[int, int]:
    """(last offset, number of records) that may be acquired: the limit of records in flight holds
    for new ones, what lies between those in flight is counted already."""
    room = partition.settings.record_locks_max - partition.in_flight
    if room > 0:
        return last, min(ask.records_max, room)
    between = partition.end_offset - fetch_offset
    return min(last, partition.end_offset - 1), min(ask.records_max, between)


class _Acquisition:
    """One call of `acquire`."""

    __slots__ = ("_ask", "_fetched", "_left", "_now_ms", "_partition", "_settings", "acquired")

    def __init__(
        self, partition: SharePartition, ask: Ask, fetched: Sequence[FetchedBatch], now_ms: int
    ) -> None:
        self._partition = partition
        self._ask = ask
        self._fetched = fetched
        self._now_ms = now_ms
        self._settings = partition.settings
        self._left = 0
        self.acquired: list[Acquired] = []

    def run(self, first: int, last: int, count_max: int) -> None:
        """Acquire at most `count_max` records from `first` to `last`, but for whole batches."""
        partition = self._partition
        self._left = count_max
        for batch in list(partition.between(first, last)):
            if self._left <= 0:
                return
            if self._is_untouched(batch):
                self._take_gap(batch, max(batch.first_offset, first), min(batch.last_offset, last))
            elif not self._take(batch, first, last):
                return
        first = max(first, partition.end_offset)
        if self._left > 0 and first <= last:
            self._take_new(first, last, len(partition.batches))

    # -- records that nobody had yet

    def _take_new(self, first: int, last: int, at: int) -> None:
        """Put batches in flight, before the one with index `at`."""
        partition, ask = self._partition, self._ask
        if self._left < last - first + 1:
            last = min(last, self._batch_end(first + self._left - 1))
        is_first = at == 0
        if ask.mode is AcquireMode.RECORD_LIMIT:
            ranges = [(first, last)]
        else:
            ranges = self._ranges(first, last)
        for begin, end in ranges:
            status = RecordStatus(AVAILABLE, 0)
            batch = InFlightBatch(begin, end, status)
            partition.batches.insert(at, batch)
            at += 1
            if ask.mode is AcquireMode.RECORD_LIMIT and batch.size > self._left:
                self._take_part_of_new(batch)
                continue
            status.acquire(ask.member_id)
            partition.lock(begin, end, status, self._now_ms)
            self._got(begin, end, status)
        if is_first and first > partition.start_offset:
            partition.start_offset = first  # the log has nothing between
        partition.end_offset = max(partition.end_offset, last + 1)

    def _take_part_of_new(self, batch: InFlightBatch) -> None:
        """The first records of a batch, as many as are left to take."""
        end = batch.first_offset + self._left - 1
        for offset, status in self._partition.split(batch).items():
            if offset > end:
                break
            status.acquire(self._ask.member_id)
            self._partition.lock(offset, offset, status, self._now_ms)
            self._got(offset, offset, status, is_part=offset > batch.first_offset)
        self._partition.has_free = True

    def _ranges(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut `first` to `last` at the beginnings of record batches, into ranges of no less than
        `batch_size` offsets."""
        size = self._ask.batch_size
        if last - first + 1 <= size:
            return [(first, last)]
        ranges: list[tuple[int, int]] = []
        for batch in self._fetched:
            base = batch.base_offset
            if base > last:
                break
            if base - first >= size:
                ranges.append((first, base - 1))
                first = base
        ranges.append((first, last))
        return ranges

    def _batch_end(self, offset: int) -> int:
        """The last offset of the record batch that holds `offset`, or that of a part of it."""
        end = offset
        for batch in self._fetched:
            if batch.base_offset > offset:
                break
            end = batch.last_offset
        return min(max(end, offset), offset + WHOLE_BATCH_MAX)

    @staticmethod
    def _is_untouched(batch: InFlightBatch) -> bool:
        """Whether nobody knows what it holds: offsets between batches that a state was read of."""
        return batch.offsets is None and batch.status.is_free and not batch.status.delivery_count

    def _take_gap(self, gap: InFlightBatch, first: int, last: int) -> None:
        """Acquire in the place of a gap; what is left of it stays one."""
        partition = self._partition
        if self._left < last - first + 1:
            last = min(last, self._batch_end(first + self._left - 1))
        if gap.first_offset < first:
            gap = partition.cut(gap, first)
        if last < gap.last_offset:
            partition.cut(gap, last + 1)
        at = partition.batch_at(first)
        del partition.batches[at]
        self._take_new(first, last, at)

    # -- records that somebody had before

    def _take(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Acquire what is free of a batch; whether to go on."""
        is_throttled = self._is_throttled(batch, first, last)
        if is_throttled and self.acquired:
            return False
        is_limited = self._ask.mode is AcquireMode.RECORD_LIMIT and batch.size > self._left
        is_whole = batch.first_offset >= self._fetched[0].base_offset and batch.last_offset <= last
        status = batch.status
        if is_whole and batch.offsets is None and not is_limited and not is_throttled:
            if status.is_free:
                status.acquire(self._ask.member_id)
                self._partition.lock(batch.first_offset, batch.last_offset, status, self._now_ms)
                self._got(batch.first_offset, batch.last_offset, status)
            return True
        if batch.offsets is None:
            if not status.is_free:
                return True
            if batch.size > SPLIT_MAX and last < batch.last_offset:
                self._partition.cut(batch, last + 1)
            self._partition.split(batch)
        return not (self._take_part(batch, first, last) and is_throttled)

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        limit = self._settings.throttled_from
        if batch.offsets is None:
            return batch.status.is_free and batch.status.delivery_count >= limit
        return any(
            status.is_free and status.delivery_count >= limit
            for _, status in batch.within(first, last)
        )

    def _take_part(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Acquire free records of a batch one by one; whether there was any."""
        ask, settings, partition = self._ask, self._settings, self._partition
        limit = settings.delivery_count_limit
        counts_last = limit > LIMIT_WITHOUT_LAST_ATTEMPT
        count, count_max = 0, None
        for offset, status in batch.within(first, last):
            if not status.is_free:
                continue
            delivered = status.delivery_count
            if counts_last and delivered == limit - 1 and count > 0:
                break
            if count_max is None and delivered >= settings.throttled_from:
                part = batch.width >> (delivered - settings.throttled_from + 1)
                count_max = max(1, part)
            status.acquire(ask.member_id)
            partition.lock(offset, offset, status, self._now_ms)
            self._got(offset, offset, status, is_part=count > 0)
            count += 1
            if counts_last and status.delivery_count == limit:
                break
            if ask.mode is AcquireMode.RECORD_LIMIT and self._left <= 0:
                break
            if count == count_max:
                break
        return count > 0

    def _got(self, first: int, last: int, status: RecordStatus, is_part: bool = False) -> None:
        """Note what was acquired; of a part of a batch, neighbours are one range."""
        self._left -= last - first + 1
        acquired, count = self.acquired, status.delivery_count
        if is_part and acquired:
            before = acquired[-1]
            if before.last_offset == first - 1 and before.delivery_count == count:
                acquired[-1] = Acquired(before.first_offset, last, count)
                return
        acquired.append(Acquired(first, last, count))


# -- transactions that were aborted


def _without_aborted(
    partition: SharePartition,
    acquired: list[Acquired],
    fetched: Sequence[FetchedBatch],
    aborted: Sequence[AbortedTransaction],
) -> list[Acquired]:
    """What is left without the records of aborted transactions, which are archived."""
    ranges = _aborted_ranges(fetched, aborted)
    is_changed = False
    left: list[Acquired] = []
    for given in acquired:
        first = given.first_offset
        for begin, end in ranges:
            if end < first or begin > given.last_offset:
                continue
            partition.archive(max(first, begin), min(given.last_offset, end), ACQUIRED)
            is_changed = True
            if begin > first:
                left.append(Acquired(first, begin - 1, given.delivery_count))
            first = end + 1
        if first <= given.last_offset:
            left.append(Acquired(first, given.last_offset, given.delivery_count))
    if is_changed:
        partition.move_start()
    return left


def _aborted_ranges(
    fetched: Sequence[FetchedBatch], aborted: Sequence[AbortedTransaction]
) -> list[tuple[int, int]]:
    """(first offset, last offset) of record batches of aborted transactions, ascending."""
    waiting = sorted(aborted, key=lambda transaction: -transaction[1])
    producers: set[int] = set()
    ranges: list[tuple[int, int]] = []
    for batch in fetched:
        while waiting and waiting[-1][1] <= batch.last_offset:
            producers.add(waiting.pop()[0])
        if batch.producer_id not in producers:
            continue
        if batch.is_control:
            producers.discard(batch.producer_id)  # the marker ends the transaction
        elif batch.is_transactional:
            ranges.append((batch.base_offset, batch.last_offset))
    return ranges
