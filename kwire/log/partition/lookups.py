"""Looking up offsets by timestamp (ListOffsets) and aborted transactions (read_committed)."""

from __future__ import annotations

from kwire.log.segment.segment import Segment
from kwire.log.segment.segment_list import Segments
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.log.types import TimestampOffset
from kwire.protocol.records import BatchHeader, find_timestamp, parse_header, read_batch


def offset_for_timestamp(
    segments: Segments, timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record from the log's start on whose timestamp is at or above `timestamp`.

    Markers count as records, as in Kafka.
    """
    for segment in segments:
        if segment.largest_timestamp() >= timestamp:
            return _find_in(segment, timestamp, log_start_offset)
    return None


def _find_in(segment: Segment, timestamp: int, offset_min: int) -> TimestampOffset | None:
    start_offset = max(segment.time_index.lookup(timestamp), segment.base_offset)
    for position, header in segment.walk_from(start_offset):
        if header.max_timestamp < timestamp or header.last_offset < offset_min:
            continue
        data = segment.pread(header.size_bytes, position)
        found = find_timestamp(data, 0, parse_header(data), timestamp, offset_min)
        if found is not None:
            return TimestampOffset(found[0], found[1], header.partition_leader_epoch)
    return None


def max_timestamp_offset(segments: Segments) -> TimestampOffset | None:
    """The first record with the largest timestamp of the log, None for a log without any."""
    best: Segment | None = None
    for segment in segments:
        if segment.max_timestamp >= 0 and (
            best is None or segment.max_timestamp > best.max_timestamp
        ):
            best = segment
    if best is None:
        return None
    target = best.max_timestamp
    # The time index names the last offset of the batch; the record is somewhere in it.
    for position, header in best.walk_from(best.offset_of_max_timestamp):
        if header.max_timestamp == target:
            return _record_with(best, position, header, target)
    return None


def _record_with(
    segment: Segment, position: int, header: BatchHeader, timestamp: int
) -> TimestampOffset:
    if header.is_log_append_time and header.magic >= 2:
        # All records have the same timestamp: Kafka answers the batch's first one.
        return TimestampOffset(timestamp, header.base_offset, header.partition_leader_epoch)
    data = segment.pread(header.size_bytes, position)
    for record in read_batch(data):
        if record.timestamp == timestamp:
            return TimestampOffset(timestamp, record.offset, header.partition_leader_epoch)
    return TimestampOffset(timestamp, header.last_offset, header.partition_leader_epoch)


def aborted_transactions(
    segments: Segments, offset: int, next_offset: int
) -> list[AbortedTransaction]:
    """Aborted transactions with records at or above `offset` and below `next_offset`.

    Raises DamagedIndexError for a transaction index that has to be rebuilt.
    """
    found: list[AbortedTransaction] = []
    for segment in segments.starting_at(offset):
        for entry in segment.aborted_transactions():
            if entry.last_offset >= offset and entry.first_offset < next_offset:
                found.append(entry)
            if entry.last_stable_offset >= next_offset:
                return found
    return found
