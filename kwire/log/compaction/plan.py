"""What of a log may be compacted, how much it needs it, and in which groups its segments go.

The rules are Apache Kafka 4.4's: nothing at or above the last stable offset, the active segment,
or a segment with records younger than `min.compaction.lag.ms`. One rule is stricter: nothing that
is not durable takes part, so that a value on disk never goes for a newer one that a power cut
may still take.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from kwire.log.files import Files
from kwire.log.partition import lookups
from kwire.log.partition.config import LONG_MAX, LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.segment.segment import Segment
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.log.segment.walking import OFFSET_DELTA_MAX


class Candidate(NamedTuple):
    """A log with something to clean: offsets `first_dirty` up to `end`, a segment's base."""

    log: PartitionLog
    first_dirty: int
    end: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool  # by max.compaction.lag.ms

    @property
    def ratio(self) -> float:
        """The share of bytes that no cleaning has seen."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.is_overdue and self.cleanable_bytes > 0:
            return True
        return self.ratio > self.log.config.min_cleanable_dirty_ratio


class Source(NamedTuple):
    """A sealed segment as the cleaning job sees it: a file that no longer changes."""

    path: str
    base_offset: int
    next_base: int
    size_bytes: int
    index_bytes: int
    time_index_bytes: int
    modified_ms: int


class LastRecord(NamedTuple):
    """The last thing that a live producer has in the log: its last data offset, -1 for none."""

    offset: int
    epoch: int


class Plan(NamedTuple):
    """Everything a cleaning job works on; no object that the loop goes on changing."""

    files: Files
    directory: str
    config: LogConfig
    sources: list[Source]
    first_dirty: int
    end: int
    aborted: list[AbortedTransaction]
    last_records: dict[int, LastRecord]
    now_ms: int


def first_dirty_offset(log: PartitionLog, cleaned_to: int | None) -> int:
    """Where the dirty part begins; a checkpoint outside of the log counts for nothing."""
    start = log.local_log_start_offset
    if cleaned_to is None or cleaned_to < start or cleaned_to > log.log_end_offset:
        return start
    return cleaned_to


def uncleanable_offset(log: PartitionLog, first_dirty: int, wall_ms: int) -> int:
    """Base of the first segment that must not be touched."""
    limit = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments.starting_at(first_dirty):
            if segment.base_offset >= limit:
                break
            if segment.largest_timestamp() > wall_ms - lag_ms:
                limit = min(limit, segment.base_offset)
                break
    limit = max(first_dirty, limit)
    if limit >= log.segments.active.base_offset:
        return log.segments.active.base_offset
    return log.segments.floor(limit).base_offset


def candidate(log: PartitionLog, cleaned_to: int | None, wall_ms: int) -> Candidate | None:
    """What there is to clean in a log, None when there is nothing."""
    active_base = log.segments.active.base_offset
    if not log.config.compacts or log.error is not None or log.is_closed:
        return None
    first_dirty = first_dirty_offset(log, cleaned_to)
    if first_dirty >= active_base:
        return None
    end = uncleanable_offset(log, first_dirty, wall_ms)
    clean = cleanable = 0
    dirty_base = log.segments.floor(first_dirty).base_offset
    for segment in log.segments:
        if segment.base_offset >= end:
            break
        if segment.base_offset < dirty_base:
            clean += segment.size_bytes
        else:
            cleanable += segment.size_bytes
            if segment.base_offset < first_dirty:
                clean += segment.size_bytes  # holds both: Kafka counts it on either side
    if clean + cleanable == 0:
        return None
    overdue = _is_overdue(log, first_dirty, wall_ms)
    return Candidate(log, first_dirty, end, clean, cleanable, overdue)


def _is_overdue(log: PartitionLog, first_dirty: int, wall_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= LONG_MAX:
        return False
    active = log.segments.active
    dirty = takewhile(lambda s: s is not active, log.segments.starting_at(first_dirty))
    timestamps = [t for t in (segment.first_timestamp() for segment in dirty) if t > 0]
    return bool(timestamps) and min(timestamps) < wall_ms - max(lag_ms, 0)


def make_plan(found: Candidate, wall_ms: int) -> tuple[Plan, list[Segment]]:
    """The job's view of the log, and the segments it stands for.

    Raises DamagedIndexError for a transaction index that has to be rebuilt, OSError.
    """
    log = found.log
    segments = [segment for segment in log.segments if segment.base_offset < found.end]
    bases = [segment.base_offset for segment in segments] + [found.end]
    sources = [
        _source(segment, next_base) for segment, next_base in zip(segments, bases[1:], strict=True)
    ]
    aborted = lookups.aborted_transactions(log.segments, segments[0].base_offset, found.end)
    last_records = {
        entry.producer_id: LastRecord(entry.last_offset, entry.epoch)
        for entry in log.producers.entries.values()
    }
    plan = Plan(
        log.local.files,
        log.directory,
        log.config,
        sources,
        found.first_dirty,
        found.end,
        aborted,
        last_records,
        wall_ms,
    )
    return plan, segments


def _source(segment: Segment, next_base: int) -> Source:
    files = segment.files
    return Source(
        segment.log_path,
        segment.base_offset,
        next_base,
        segment.size_bytes,
        _size_of(files, segment.index_path),
        _size_of(files, segment.time_index_path),
        files.modified_ms(segment.log_path),
    )


def _size_of(files: Files, path: str) -> int:
    try:
        return files.size_of(path)
    except FileNotFoundError:
        return 0


def groups(plan: Plan, end_offset: int) -> list[list[Source]]:
    """The segments below `end_offset`, those together that fit into one.

    A group stays below `segment.bytes`, its indexes below `segment.index.bytes`, and its offsets
    within 2**31 - 1 of its base.
    """
    sources = [source for source in plan.sources if source.base_offset < end_offset]
    found: list[list[Source]] = []
    size = index = time_index = 0
    for source in sources:
        size += source.size_bytes
        index += source.index_bytes
        time_index += source.time_index_bytes
        fits = (
            bool(found)
            and size <= plan.config.segment_bytes
            and max(index, time_index) <= plan.config.segment_index_bytes
            and (
                source.size_bytes == 0
                or source.next_base - 1 - found[-1][0].base_offset <= OFFSET_DELTA_MAX
            )
        )
        if fits:
            found[-1].append(source)
        else:
            found.append([source])
            size, index = source.size_bytes, source.index_bytes
            time_index = source.time_index_bytes
    return found
