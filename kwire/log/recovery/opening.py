"""Opening a partition's directory: what is there, what is whole, what can be rebuilt.

After a clean stop only the end of the log is looked at. After a kill every batch from the segment
of the recovery point on is checked and the indexes, producers and epochs are rebuilt from them.
The rules, better than Kafka's where Kafka does harm (measured on Apache Kafka 4.4):

- A torn or corrupt tail of the last segment at or above the recovery point is cut off.
- Damage anywhere else costs only the damaged bytes: they are kept beside the segment in a
  `.quarantine` file, named in an ERROR, and all other batches stay.
- Indexes, producer snapshots, epochs and transaction indexes that are missing or damaged are
  rebuilt from the log.

All of that works on the files (`LocalLog`); there is a PartitionLog when they are in order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.clock import Clock
from kwire.log.directories.checkpoint_format import LOG_STARTS, OFFSET_MAX, RECOVERY_POINTS
from kwire.log.files import Files, SystemFiles
from kwire.log.flushing import Flusher
from kwire.log.partition.config import LogConfig
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.partition.producer_snapshots import SnapshotFiles
from kwire.log.partition.producers import Producers
from kwire.log.partition.replay import check_transaction_indexes, load_producers, rebuild_epochs
from kwire.log.recovery.directory_contents import FoundFiles, sort_files
from kwire.log.recovery.known_logs import KnownLog, put_back
from kwire.log.recovery.repair import LostRecordsError, SegmentRepair, set_segments_aside
from kwire.log.scheduling import ImmediateScheduler, Scheduler
from kwire.log.segment.open_file_limit import OpenSegments
from kwire.log.segment.segment import Segment
from kwire.protocol.errors import KafkaError

logger = logging.getLogger(__name__)


# More offsets than any loss at the end of a log takes: a checkpoint that says so is damaged.
LOST_MAX = 1 << 40


def open_log(
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    clock: Clock,
    *,
    files: Files | None = None,
    scheduler: Scheduler | None = None,
    flusher: Flusher | None = None,
    open_segments: OpenSegments | None = None,
    clean: bool = False,
    recovery_point: int | None = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    producer_expiration_ms: int = 86_400_000,
    verify_transactions: bool = True,
    durable_below: int = 0,
    known: KnownLog | None = None,
    on_error: Callable[[PartitionLog, Exception, bool], None] | None = None,
) -> PartitionLog:
    """Open the log in `directory`, repairing what needs repair; create it where there is none.

    `clean` says that whoever wrote it last stopped cleanly; the offsets are those of the log
    directory's checkpoint files. A `recovery_point` of None means that its file is lost: then only
    what is at the very end is taken for a tail that was never durable. Nothing is repaired when
    offsets below `durable_below` are missing: LostRecordsError. What is `known` of the files is not
    looked up in them. Raises OSError when a file cannot be read or written.
    """
    name = f"{topic}-{partition}"
    local = LocalLog(
        directory,
        name,
        topic_id,
        config,
        clock,
        files=files or SystemFiles(),
        scheduler=scheduler or ImmediateScheduler(),
        flusher=flusher,
        open_segments=open_segments,
    )
    producers = Producers(name, expiration_ms=producer_expiration_ms, verify=verify_transactions)
    unsaved: list[Exception] = []  # epochs that a shortage keeps from their file
    local.epoch_file.on_error = unsaved.append
    if known is not None:
        put_back(known, local, producers, recovery_point)
        start, promised_end = known.log_start_offset, 0
    else:
        recovery = _Recovery(local, producers, clean=clean, durable_below=durable_below)
        recovery.run(log_start_offset, recovery_point, high_watermark)
        start, promised_end = recovery.log_start_offset, recovery.promised_end
    log = PartitionLog(
        topic,
        partition,
        topic_id,
        local,
        producers,
        log_start_offset=start,
        promised_end=promised_end,
        on_error=on_error,
    )
    for error in unsaved:
        log.fail(error)
    log.update_high_watermark(high_watermark)
    local.close()  # segments are opened again when somebody appends or reads
    if not clean:
        local.segments.active.let_go_of_indexes()
    return log


class _Recovery:
    """Brings the files of a log in order, and finds out where it begins and ends.

    `promised_end` is where a log ended durably that has lost its end.
    """

    def __init__(
        self, local: LocalLog, producers: Producers, *, clean: bool, durable_below: int
    ) -> None:
        self._local = local
        self._producers = producers
        self._clean = clean
        self._durable_below = durable_below
        self._repair = SegmentRepair(local, durable_below)
        self.log_start_offset = 0
        self.promised_end = 0

    def run(self, log_start_offset: int, recovery_point: int | None, high_watermark: int) -> None:
        """Raises OSError, LostRecordsError, KafkaError."""
        local = self._local
        files, directory = local.files, local.directory
        try:
            found = sort_files(files, directory)
        except FileNotFoundError:
            files.make_directory(directory)
            found = sort_files(files, directory)
        local.snapshots = SnapshotFiles(files, directory, found.snapshots)
        # Before a repair notes the epochs of one segment: those of the others are in the file.
        epochs_are_whole = self._load_epochs(found)
        self._add_segments(found, checked_from=None if self._clean else recovery_point or 0)
        is_new = not len(local.segments)
        if is_new:
            local.begin_segment(max(log_start_offset, 0))
        self.log_start_offset = max(log_start_offset, local.segments.first.base_offset)
        recovery_point = _plausible(local, recovery_point)
        end_offset = self._recover(
            found, epochs_are_whole, recovery_point, high_watermark, is_new=is_new
        )
        if max(recovery_point or 0, end_offset) < high_watermark:
            logger.warning(
                "%s: ends at offset %d, although its high watermark was %d; what was not durable "
                "is lost",
                directory,
                end_offset,
                high_watermark,
            )
        local.recovery_point = min(max(recovery_point or 0, self.log_start_offset), end_offset)

    def _recover(
        self,
        found: FoundFiles,
        epochs_are_whole: bool,
        recovery_point: int | None,
        high_watermark: int,
        *,
        is_new: bool,
    ) -> int:
        """Find the log's end, repairing what is damaged, and everything that goes with it. Of a
        log that is new there is nothing to be read."""
        local, clean, repair = self._local, self._clean, self._repair
        point = recovery_point or 0
        if is_new:
            end: int | None = local.segments.active.base_offset
        else:
            end = _end_if_whole(local) if clean else None
        first = local.segments.active.base_offset if clean else point
        if end is None:
            # After a clean stop all was durable: what is amiss is no tail that was never promised.
            end_offset = repair.recover_segments(first, OFFSET_MAX if clean else recovery_point)
        else:
            end_offset = end
        if end_offset < self._durable_below:
            raise LostRecordsError(
                f"{local.directory}: the log ends at offset {end_offset}, it ended at "
                f"{self._durable_below}"
            )
        if self.log_start_offset > end_offset:
            end_offset = self._start_above_end(end_offset, is_whole=clean and end_offset >= point)
        if end_offset < point:
            logger.error(
                "%s: ends at offset %d, although %d was stored durably",
                local.directory,
                end_offset,
                point,
            )
            # After a kill the file may be older than a truncation.
            self.promised_end = point if clean else 0
        if not epochs_are_whole:
            repair.repairing(lambda: rebuild_epochs(local))
        local.epoch_file.epochs.truncate_from_end(end_offset)
        local.epoch_file.epochs.truncate_from_start(self.log_start_offset)
        local.snapshots.remove_stray(local.segments.bases)
        local.snapshots.remove_above(end_offset)
        repair.repairing(
            lambda: load_producers(
                local,
                self._producers,
                start=self.log_start_offset,
                end_offset=end_offset,
                high_watermark=high_watermark,
                known=repair.known_batches,
            )
        )
        local.written_offset = end_offset
        repair.repairing(lambda: check_transaction_indexes(local, end_offset, found.snapshots))
        if not clean:
            local.doubt_durability(first)
        return end_offset

    def _add_segments(self, found: FoundFiles, checked_from: int | None) -> None:
        """Segments of all logs found; their indexes are rebuilt where missing.

        Not from the segment of `checked_from` on: recovery reads those anyhow.
        """
        local = self._local
        bases = sorted(found.logs)
        limit = bases[-1] + 1 if bases else 0
        if checked_from is not None:
            limit = max([base for base in bases if base <= checked_from], default=0)
        missing = 0
        for base, next_base in zip(bases, [*bases[1:], None], strict=False):
            segment = Segment(
                local.files,
                local.directory,
                base,
                local.config,
                size_bytes=found.logs[base],
                created_ms=local.clock.wall_ms(),
                has_transaction_index=base in found.transaction_indexes,
                is_new=False,
            )
            segment.is_sealed = next_base is not None
            if not found.logs[base]:
                # A damaged index of an empty log must not outlive the log's first batches.
                if found.indexes.get(base, 0) or found.time_indexes.get(base, 0):
                    segment.reset_indexes()
                    segment.finish_indexes()
                if next_base is not None and not local.config.compacts:
                    logger.error(
                        "%s is empty: offsets %d to %d are lost",
                        segment.log_path,
                        base,
                        next_base - 1,
                    )
            elif base < limit and not (base in found.indexes and base in found.time_indexes):
                missing += 1
                self._repair.repair_segment(segment, None, next_base)
            elif base < limit and next_base is None and not found.indexes[base]:
                segment.take_empty_index()
            elif base >= limit and found.indexes.get(base) == 0:
                segment.is_index_file_empty = True
            local.add(segment)
        if missing:
            logger.error("%s: rebuilt the missing indexes of %d segments", local.directory, missing)

    def _start_above_end(self, end_offset: int, *, is_whole: bool) -> int:
        """The log's start lies behind its end: which of the two is right?

        Where nothing of the log is missing (`is_whole`), or none could ever be missing, it is the
        start that is damaged, and counts for nothing. Else the end was lost, with the last records
        that were deleted; what is left is not shown any more, but kept.
        """
        local, start = self._local, self.log_start_offset
        if is_whole or start - end_offset > LOST_MAX:
            self.log_start_offset = local.segments.first.base_offset
            logger.error(
                "%s: its start is %d by %s, its end %d; starting at offset %d: records that were "
                "deleted may come back",
                local.directory,
                start,
                LOG_STARTS,
                end_offset,
                self.log_start_offset,
            )
            return end_offset
        logger.warning(
            "%s: ends at offset %d before its start %d; beginning anew there",
            local.directory,
            end_offset,
            start,
        )
        set_segments_aside(local, list(local.segments), start)
        local.begin_segment(start)
        return start

    def _load_epochs(self, found: FoundFiles) -> bool:
        """Read the epoch file; False when it has to be rebuilt."""
        local = self._local
        if not found.has_epochs:
            return not any(found.logs.values())
        try:
            local.epoch_file.load()
        except ValueError as error:
            logger.error("%s: %s; rebuilding it from the log", local.epoch_file.path, error)
            return False
        return True


def _plausible(local: LocalLog, recovery_point: int | None) -> int | None:
    """The recovery point, None where it cannot be one of this log."""
    active_base = local.segments.active.base_offset
    if recovery_point is None or recovery_point - active_base <= LOST_MAX:
        return recovery_point
    logger.error(
        "%s: offset %d in %s cannot be one of this log, whose last segment begins at %d; going on "
        "without it",
        local.directory,
        recovery_point,
        RECOVERY_POINTS,
        active_base,
    )
    return None


def _end_if_whole(local: LocalLog) -> int | None:
    """The log's end by a walk from the last index entry; None when anything is amiss there."""
    segment = local.segments.active
    if not segment.size_bytes:
        return segment.base_offset
    try:
        entry_offset, position = segment.index.last()
        expected = segment.base_offset
        first = True
        end = position
        for at, header in segment.walk(position):
            if first and position and header.last_offset != entry_offset:
                return None
            end = at + header.size_bytes
            if header.base_offset < expected or header.last_offset_delta < 0:
                return None
            if end > segment.size_bytes or not segment.is_batch_whole(at, header):
                return None
            expected = header.next_offset
            first = False
    except KafkaError:
        return None
    if end != segment.size_bytes or (first and segment.size_bytes):
        return None
    segment.bytes_since_index = segment.size_bytes - position
    return expected
