"""Giving up old segments: by time, by size, and below the log's start (Apache Kafka 4.4's rules).

Only segments wholly below the high watermark go. Files are renamed to `.deleted` at once and
removed after `file.delete.delay.ms`, off the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.log.files import Files, unlink_quietly
from kwire.log.segment.segment import DELETED_SUFFIX, Segment

if TYPE_CHECKING:
    from kwire.log.partition.partition_log import PartitionLog

logger = logging.getLogger(__name__)


def delete_old_segments(log: PartitionLog, wall_ms: int, segments_max: int) -> int:
    """Apply the topic's retention; returns the number of segments given up."""
    count = _delete(
        log, "log start offset", lambda s, next_base: _is_below_start(log, next_base), segments_max
    )
    if log.config.deletes:
        count += _delete_by_size(log, segments_max - count)
        if log.config.retention_ms >= 0:
            limit_ms = wall_ms - log.config.retention_ms
            count += _delete(
                log,
                "retention.ms",
                lambda s, _: s.largest_timestamp() < limit_ms,
                segments_max - count,
            )
    return count


def _is_below_start(log: PartitionLog, next_base: int | None) -> bool:
    return next_base is not None and next_base <= log.log_start_offset


def _delete_by_size(log: PartitionLog, segments_max: int) -> int:
    limit = log.config.retention_bytes
    excess = log.size_bytes - limit
    if limit < 0 or excess < 0:
        return 0

    def is_too_much(segment: Segment, next_base: int | None) -> bool:
        nonlocal excess
        if excess - segment.size_bytes < 0:
            return False
        excess -= segment.size_bytes
        return True

    return _delete(log, "retention.bytes", is_too_much, segments_max)


def _delete(
    log: PartitionLog,
    reason: str,
    applies: Callable[[Segment, int | None], bool],
    segments_max: int,
) -> int:
    """Give up the oldest segments as long as the rule applies to them."""
    gone: list[Segment] = []
    for at, segment in enumerate(log.segments):
        if len(gone) == segments_max:
            break
        next_base = log.segments.next_base(at)
        end_offset = log.next_offset if next_base is None else next_base  # unwritten ones too
        is_empty_active = next_base is None and not segment.assigned_bytes
        if log.high_watermark < end_offset or is_empty_active or not applies(segment, next_base):
            break
        gone.append(segment)
    if len(gone) == len(log.segments) and log.error is not None:
        gone.pop()  # there is no room to begin another one
    if not gone:
        return 0
    if len(gone) == len(log.segments):
        log.roll()
    logger.info(
        "%s: giving up %d segments, %d to %d, by %s",
        log.directory,
        len(gone),
        gone[0].base_offset,
        gone[-1].base_offset,
        reason,
    )
    start = log.segments.next_base(len(gone) - 1)
    assert start is not None, "there is one behind those that go"
    log.move_start(start)  # first: those that cannot be renamed now go another time
    remove_segments(log, gone)
    return len(gone)


def remove_segments(log: PartitionLog, gone: list[Segment]) -> None:
    """Take segments out of the log; their files go after the delay. Raises OSError."""
    removed: list[Segment] = []
    try:
        for segment in gone:
            segment.rename(DELETED_SUFFIX)
            log.segments.remove(segment)
            removed.append(segment)
    finally:
        remove_later(log, removed)
    log.snapshots.remove([segment.base_offset for segment in gone])


def remove_later(log: PartitionLog, gone: list[Segment]) -> None:
    """Remove the `.deleted` files of segments after the delay: readers may still be there."""
    paths = [path for segment in gone for path in segment.paths()]
    files = log.files

    def remove() -> None:
        for segment in gone:
            segment.is_deleted = True
            segment.close()
        log.scheduler.run(lambda: remove_files(files, paths))

    log.scheduler.call_later(log.config.file_delete_delay_ms, remove)


def remove_files(files: Files, paths: list[str]) -> None:
    """Remove files; the job of the executor."""
    unlink_quietly(files, paths)
