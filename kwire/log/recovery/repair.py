"""Repairing segments whose batches are not all whole: what is cut, what is kept aside.

At or above the recovery point nothing was promised to be durable: at the first loss of offsets the
log ends, as after a power cut, so that a replica fetches the rest again. Below it, or where the
recovery point is unknown, only damaged bytes go, into a `.quarantine` file.
"""

from __future__ import annotations

import logging

from kwire.log.files import unlink_quietly
from kwire.log.partition.base import LogBase
from kwire.log.recovery.quarantine import free_path, quarantine, salvage
from kwire.log.recovery.segment_check import READINGS_MAX, Damage, check_segment, is_a_batch
from kwire.log.segment.segment import LOG_SUFFIX, Segment
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class LostRecordsError(ValueError):
    """Records are missing that have to be there; one line."""


def recover_segments(log: LogBase, first_offset: int, recovery_point: int | None) -> int:
    """Check all batches from the segment of `first_offset` on; returns the log's end."""
    first_base = log.segments.floor(first_offset).base_offset
    # Later snapshots may hold what is cut off, and the replay behind them rebuilds nothing.
    log.snapshots.remove_above(first_base)
    segments = log.segments.starting_at(first_offset)
    expected = first_base
    for at, segment in enumerate(segments):
        if at and _breaks(log, segment, expected, recovery_point):
            if expected < log.durable_below:
                raise LostRecordsError(
                    f"{segment.log_path} does not follow on offset {expected}, where the log "
                    "before it ends"
                )
            set_segments_aside(log, segments[at:], expected)
            break
        next_base = segments[at + 1].base_offset if at + 1 < len(segments) else None
        expected, was_cut = repair_segment(log, segment, recovery_point, next_base)
        if was_cut and next_base is not None:
            set_segments_aside(log, segments[at + 1 :], expected)
            break
    active = log.segments.active
    active.reopen(log.config)
    return max(expected, active.base_offset)


def _breaks(log: LogBase, segment: Segment, expected: int, recovery_point: int | None) -> bool:
    """Whether a segment does not follow on the one before: offsets twice, or missing."""
    if segment.base_offset < expected:
        return True
    if segment.base_offset == expected or log.config.compacts:
        return False  # compaction leaves gaps
    return recovery_point is not None and expected >= recovery_point


def repair_segment(
    log: LogBase, segment: Segment, recovery_point: int | None, next_base: int | None
) -> tuple[int, bool]:
    """Check a segment, repair it, rebuild its indexes; (its end, whether offsets were cut off)."""
    was_cut = False
    checked = check_segment(segment)
    for item in checked.damage:
        if item.next_offset < log.durable_below and item.resume_offset != item.next_offset:
            raise LostRecordsError(f"{segment.log_path}: {item.reason} at byte {item.position}")
    if checked.damage:
        was_cut = _repair(segment, checked.damage, recovery_point, next_base)
        checked = check_segment(segment)
    for _ in range(READINGS_MAX):
        segment.reset_indexes()
        epochs: dict[int, tuple[int, int]] = {}  # epoch -> its first and last offset
        latest = 0
        end_offset, digest = segment.base_offset, 0
        for _, header in segment.walk(0):
            digest = hash((digest, header))
            segment.assign(header, header.base_offset, header.max_timestamp)
            end_offset = header.next_offset
            epoch = header.partition_leader_epoch
            if epoch >= latest:
                first_offset, _ = epochs.get(epoch, (header.base_offset, 0))
                epochs[epoch], latest = (first_offset, header.last_offset), epoch
        if digest == checked.digest:
            break
        logger.warning("%s: two readings differ; reading it again", segment.log_path)
    else:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{segment.log_path} is read differently every time"
        )
    for epoch, (first_offset, last_offset) in epochs.items():
        log.leader_epochs.observe(epoch, first_offset)
        log.leader_epochs.observe(epoch, last_offset)
    segment.finish_rebuild()
    return end_offset, was_cut


def _repair(
    segment: Segment, damage: list[Damage], recovery_point: int | None, next_base: int | None
) -> bool:
    for item in damage:
        resume = next_base if item.resume_offset is None else item.resume_offset
        if resume == item.next_offset:
            continue  # nothing is missing: stray bytes between batches
        is_tail = resume is None
        # A whole batch that is not in its place is no torn write.
        is_durable = item.next_offset < (recovery_point or 0) or is_a_batch(segment, item)
        if is_durable or (recovery_point is None and not is_tail):
            continue
        logger.warning(
            "%s: %s at byte %d; cutting %d bytes off, the log ends at offset %d",
            segment.log_path,
            item.reason,
            item.position,
            segment.size_bytes - item.position,
            item.next_offset,
        )
        before = [earlier for earlier in damage if earlier.position < item.position]
        segment.cut(item.position)
        if before:
            quarantine(segment, before)
            salvage(segment, before)
        return True
    quarantine(segment, damage)
    salvage(segment, damage)
    return False


def set_segments_aside(log: LogBase, segments: list[Segment], end_offset: int) -> None:
    """Take segments that no longer follow on the log out of it; those with data are kept."""
    for segment in reversed(segments):
        log.segments.remove(segment)
        segment.close()
        if segment.size_bytes:
            target = free_path(log.files, segment.log_path)
            logger.error(
                "%s: does not belong to the log, which goes on at offset %d; kept as %s",
                segment.log_path,
                end_offset,
                target,
            )
            log.files.rename(segment.log_path, target)
        unlink_quietly(
            log.files,
            [p for p in segment.paths() if segment.size_bytes == 0 or not p.endswith(LOG_SUFFIX)],
        )
    log.has_new_files = True
