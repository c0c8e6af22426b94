"""Rolling and truncating a partition's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.log.segment.segment import OFFSET_DELTA_MAX, Segment

if TYPE_CHECKING:
    from kwire.log.partition.base import LogBase


def must_roll(log: LogBase, segment: Segment, last_offset: int, max_timestamp: int) -> bool:
    """Kafka's rules beside size: full indexes, offsets too far apart, age by the timestamps."""
    if segment.is_full or last_offset - segment.base_offset > OFFSET_DELTA_MAX:
        return True
    first_timestamp = segment.first_timestamp()
    if first_timestamp >= 0:
        waited_ms = max_timestamp - first_timestamp
    else:
        waited_ms = log.clock.wall_ms() - segment.created_ms
    if waited_ms <= 0:
        return False
    return waited_ms > log.config.roll_ms - jitter_ms(log)


def jitter_ms(log: LogBase) -> int:
    """How much earlier than others this log rolls, so that not all logs of a broker roll at once.

    Below both segment.jitter.ms and the age that a segment may have: one of no age would be rolled
    by every append.
    """
    bound_ms = min(log.config.segment_jitter_ms, log.config.roll_ms)
    return bound_ms * log.jitter_share >> 32


def roll(log: LogBase, base_offset: int | None = None) -> Segment:
    """Seal the active segment and begin a new one; what was sealed is flushed off the loop."""
    log.write_tail()
    base = log.next_offset if base_offset is None else max(base_offset, log.next_offset)
    active = log.segments.active
    if not active.size_bytes and active.base_offset == base:
        return active
    active.seal()
    log.unsynced_segments.append(active)
    log.save_snapshot()
    segment = new_segment(log, base)
    if not active.size_bytes:
        # Nothing was ever in it (offsets too far from its base): it gives way.
        log.segments.remove(active)
        active.delete_files()
    log.flush_up_to(base)
    return segment


def new_segment(log: LogBase, base_offset: int) -> Segment:
    """Create an empty active segment. Raises OSError; the log is then as it was."""
    segment = _empty_segment(log, base_offset)
    try:
        _create(log, segment)
    except OSError:
        log.damage.stray.append(segment)
        segment.close()
        raise
    log.add_segment(segment)
    return segment


def _empty_segment(log: LogBase, base_offset: int) -> Segment:
    return Segment(
        log.files, log.directory, base_offset, log.config, created_ms=log.clock.wall_ms()
    )


def _create(log: LogBase, segment: Segment) -> None:
    log.has_new_files = True
    segment.create()
    if log.config.preallocate:
        segment.preallocate(log.config.segment_bytes)


def truncate_to(log: LogBase, offset: int) -> None:
    """Drop all records from `offset` on; producers and epochs as they were there."""
    if offset >= log.next_offset:  # what still waits for its flush is dropped as well
        log.leader_epochs.truncate_from_end(offset)
        return
    if log.segments.first.base_offset > offset:
        truncate_fully(log, offset)
        return
    for segment in reversed(log.segments.above(offset)):
        log.segments.remove(segment)
        segment.delete_files()
    active = log.segments.active
    active.reopen(log.config)
    found = active.find(offset)
    if found is not None:
        active.truncate_to(offset, found[0])
    log.leader_epochs.truncate_from_end(offset)
    log.recovery_point = min(log.recovery_point, offset)
    log.promised_end = 0
    log.snapshots.remove_above(offset)
    log.log_start_offset = min(log.log_start_offset, offset)
    from kwire.log.recovery.replay import load_producers

    load_producers(log, offset, log.high_watermark)
    log.set_end(offset)
    log.update_high_watermark(min(log.high_watermark, offset))
    log.truncated()


def truncate_fully(log: LogBase, offset: int) -> None:
    """Drop all segments and begin anew at `offset`."""
    for segment in reversed(list(log.segments)):
        log.segments.remove(segment)
        segment.delete_files()
    log.snapshots.remove(list(log.snapshots.offsets))
    log.leader_epochs.clear()
    log.producers.clear()
    log.log_start_offset = offset
    log.recovery_point = offset
    log.promised_end = 0
    log.high_watermark = offset
    segment = _empty_segment(log, offset)
    log.add_segment(segment)  # also if its files cannot be made: then all of this is done again
    log.set_end(offset)
    _create(log, segment)
    log.truncated()
