"""Repairing segments whose batches are not all whole: what is cut, what is kept aside.

At or above the recovery point nothing was promised to be durable: at the first loss of offsets the
log ends, as after a power cut, so that a replica fetches what follows again. Below it, or where the
recovery point is unknown, only damaged bytes go, into a `.quarantine` file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.log.files import unlink_quietly
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.replay import DamagedSegmentError
from kwire.log.recovery.quarantine import free_path, quarantine, salvage
from kwire.log.recovery.segment_check import READINGS_MAX, Damage, check_segment, is_a_batch
from kwire.log.segment.segment import LOG_SUFFIX, Segment
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader

logger = logging.getLogger(__name__)

KNOWN_BATCHES_MAX = 64


class LostRecordsError(ValueError):
    """Records are missing that have to be there; one line."""


class SegmentRepair:
    """Repairs the segments of a log that is being opened.

    Nothing is repaired where offsets below `durable_below` are missing: LostRecordsError.
    """

    def __init__(self, local: LocalLog, durable_below: int) -> None:
        self._local = local
        self._durable_below = durable_below
        # Of short segments, by base offset, as two readings found them: who needs the headers next
        # does not read them a third time.
        self.known_batches: dict[int, list[tuple[int, BatchHeader]]] = {}

    def repairing(self, action: Callable[[], None]) -> None:
        """Do `action`; where it comes across a damaged segment, repair that and begin anew."""
        repaired: set[int] = set()
        while True:
            try:
                return action()
            except DamagedSegmentError as error:
                base = error.segment.base_offset
                if base in repaired:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
                repaired.add(base)
                bases = self._local.segments.bases
                at = bases.index(base)
                next_base = bases[at + 1] if at + 1 < len(bases) else None
                self.repair_segment(error.segment, None, next_base)

    def recover_segments(self, first_offset: int, recovery_point: int | None) -> int:
        """Check all batches from the segment of `first_offset` on; returns the log's end."""
        local = self._local
        first_base = local.segments.floor(first_offset).base_offset
        # Later snapshots may hold what is cut off, and the replay behind them rebuilds nothing.
        local.snapshots.remove_above(first_base)
        segments = local.segments.starting_at(first_offset)
        expected = first_base
        for at, segment in enumerate(segments):
            if at and self._breaks(segment, expected, recovery_point):
                if expected < self._durable_below:
                    raise LostRecordsError(
                        f"{segment.log_path} does not follow on offset {expected}, where the log "
                        "before it ends"
                    )
                set_segments_aside(local, segments[at:], expected)
                break
            next_base = segments[at + 1].base_offset if at + 1 < len(segments) else None
            expected, was_cut = self.repair_segment(segment, recovery_point, next_base)
            if was_cut and next_base is not None:
                set_segments_aside(local, segments[at + 1 :], expected)
                break
        active = local.segments.active
        active.reopen(local.config)
        return max(expected, active.base_offset)

    def _breaks(self, segment: Segment, expected: int, recovery_point: int | None) -> bool:
        """Whether a segment does not follow on the one before: offsets twice, or missing."""
        if segment.base_offset < expected:
            return True
        if segment.base_offset == expected or self._local.config.compacts:
            return False  # compaction leaves gaps
        return recovery_point is not None and expected >= recovery_point

    def repair_segment(
        self, segment: Segment, recovery_point: int | None, next_base: int | None
    ) -> tuple[int, bool]:
        """Check a segment, repair it, rebuild its indexes; (its end, whether offsets were cut
        off)."""
        was_cut = False
        checked = check_segment(segment)
        for item in checked.damage:
            if item.next_offset < self._durable_below and item.resume_offset != item.next_offset:
                raise LostRecordsError(f"{segment.log_path}: {item.reason} at byte {item.position}")
        if checked.damage:
            was_cut = _repair(segment, checked.damage, recovery_point, next_base)
            checked = check_segment(segment)
        end_offset, epochs, batches = _rebuild_indexes(segment, checked.digest)
        self.known_batches.pop(segment.base_offset, None)
        if len(batches) <= KNOWN_BATCHES_MAX:
            self.known_batches[segment.base_offset] = batches
        for epoch, (first_offset, last_offset) in epochs.items():
            self._local.epoch_file.epochs.observe(epoch, first_offset)
            self._local.epoch_file.epochs.observe(epoch, last_offset)
        segment.finish_rebuild()
        return end_offset, was_cut


def _rebuild_indexes(
    segment: Segment, digest: int
) -> tuple[int, dict[int, tuple[int, int]], list[tuple[int, BatchHeader]]]:
    """Index all batches of a segment, which have this digest: its end, by epoch the first and the
    last offset, and the batches, of which one more than KNOWN_BATCHES_MAX says that there are
    more."""
    for _ in range(READINGS_MAX):
        segment.reset_indexes()
        epochs: dict[int, tuple[int, int]] = {}
        batches: list[tuple[int, BatchHeader]] = []
        latest = 0
        end_offset, found = segment.base_offset, 0
        for position, header in segment.walk(0):
            found = hash((found, header))
            if len(batches) <= KNOWN_BATCHES_MAX:
                batches.append((position, header))
            segment.assign(header, header.base_offset, header.max_timestamp)
            end_offset = header.next_offset
            epoch = header.partition_leader_epoch
            if epoch >= latest:
                first_offset, _ = epochs.get(epoch, (header.base_offset, 0))
                epochs[epoch], latest = (first_offset, header.last_offset), epoch
        if found == digest:
            return end_offset, epochs, batches
        logger.warning("%s: two readings differ; reading it again", segment.log_path)
    raise KafkaError(
        ErrorCode.CORRUPT_MESSAGE, f"{segment.log_path} is read differently every time"
    )


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


def set_segments_aside(local: LocalLog, segments: list[Segment], end_offset: int) -> None:
    """Take segments that no longer follow on the log out of it; those with data are kept."""
    for segment in reversed(segments):
        local.segments.remove(segment)
        segment.close()
        if segment.size_bytes:
            target = free_path(local.files, segment.log_path)
            logger.error(
                "%s: does not belong to the log, which goes on at offset %d; kept as %s",
                segment.log_path,
                end_offset,
                target,
            )
            local.files.rename(segment.log_path, target)
        unlink_quietly(
            local.files,
            [p for p in segment.paths() if segment.size_bytes == 0 or not p.endswith(LOG_SUFFIX)],
        )
    local.has_new_files = True
