"""The log of one partition: appending, reading, look-ups, offsets, producers, leader epochs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kwire.clock import Clock
from kwire.kept_errors import anew
from kwire.log.flushing import SyncRequest, sync_files
from kwire.log.partition import lookups
from kwire.log.partition import rolling as maintenance
from kwire.log.partition.append import AppendingLog
from kwire.log.partition.config import LogConfig
from kwire.log.partition.producers import ProducerEntry
from kwire.log.segment import reading
from kwire.log.segment.segment import Segment
from kwire.log.segment.transaction_index import DamagedIndexError
from kwire.log.types import FetchSlices, Isolation, TimestampOffset
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

TOLD_MAX = 100  # damages that are named of one log


class PartitionLog(AppendingLog):
    """One partition's log, opened by `open` (recovery.open_log)."""

    _told: dict[str, None] | None = None  # what was named of its damages

    @classmethod
    def open(
        cls,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        clock: Clock,
        **options: Any,
    ) -> PartitionLog:
        """Open or create the log in `directory`; options as `recovery.open_log` takes them."""
        from kwire.log.recovery.opening import open_log

        return open_log(directory, topic, partition, topic_id, config, clock, **options)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        min_one: bool = True,
        may_wait: bool = False,
        as_file: bool = False,
    ) -> FetchSlices | Pending[FetchSlices]:
        """Whole batches from the one that holds `offset` on, up to what `isolation` shows.

        With `may_wait` a read that would have to wait for the disk is made off the loop and gives a
        Pending; without, it blocks. `as_file` lets much data be a FileSlice.
        Raises KafkaError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only "
                f"have log segments from offset {self.log_start_offset} to {self.log_end_offset}.",
            )
        stable = self.last_stable_offset
        offset_max = self.log_end_offset
        if isolation == Isolation.HIGH_WATERMARK:
            offset_max = self.high_watermark
        elif isolation == Isolation.COMMITTED:
            offset_max = stable
        found = reading.EMPTY
        if offset < offset_max:
            try:
                found = reading.read_batches(
                    self.segments,
                    offset,
                    bytes_max,
                    offset_max,
                    written_offset=self._written_offset,
                    min_one=min_one,
                    may_wait=may_wait,
                    as_file=as_file,
                )
            except reading.ColdReadError as cold:
                return self._read_later(cold, offset, bytes_max, isolation, min_one)
            except KafkaError as error:
                self._cannot_be_read(offset, error)
                raise
            except OSError as error:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"Error while reading {self.name}: {error}"
                ) from error
            if found.data and reading.begins_above(found.data, offset) and not self.config.compacts:
                self._tell(f"offset {offset} and those behind it are missing")
        aborted = None
        if isolation == Isolation.COMMITTED:
            aborted = self._aborted(offset, found.next_offset) if found.data else []
        return FetchSlices(
            [found.data] if found.data else [],
            len(found.data),
            found.next_offset if found.data else offset,
            self.high_watermark,
            stable,
            self.log_start_offset,
            aborted,
            found.counted_bytes,
        )

    def _cannot_be_read(self, offset: int, error: KafkaError) -> None:
        segment, then = self.segments.floor(offset), ""
        if segment.is_sealed:
            segment.ask_for_repair()
            then = "; the next start keeps the damaged bytes aside and goes on behind them"
        self._tell(f"cannot be read at offset {offset}: {error.message}{then}")

    def _tell(self, damage: str) -> None:
        """Name what a reader has met, once: no start looks at all of a log."""
        if self._told is None:
            self._told = {}
        if damage not in self._told and len(self._told) < TOLD_MAX:
            self._told[damage] = None
            logger.error("%s: %s; `kwire log verify` tells more", self.directory, damage)

    def _read_later(
        self,
        cold: reading.ColdReadError,
        offset: int,
        bytes_max: int,
        isolation: Isolation,
        min_one: bool,
    ) -> Pending[FetchSlices]:
        """Bring the bytes into memory off the loop, then read as things are by then."""
        files, handle = self.files, cold.segment.handle
        position, size_bytes = cold.position, cold.size_bytes

        def warm() -> None:
            files.pread(handle, size_bytes, position)

        result: Pending[FetchSlices] = Pending()

        def warmed(done: Pending[None]) -> None:
            # An error, or a file closed meanwhile, shows again in the read itself.
            try:
                found = self.read(offset, bytes_max, isolation=isolation, min_one=min_one)
            except KafkaError as error:
                result.fail(error)
            else:
                assert isinstance(found, FetchSlices)
                result.complete(found)

        self.scheduler.run(warm).add_done_callback(warmed)
        return result

    def _aborted(self, offset: int, next_offset: int) -> list[tuple[int, int]]:
        try:
            entries = lookups.aborted_transactions(self.segments, offset, next_offset)
        except DamagedIndexError:
            from kwire.log.recovery.replay import rebuild_transaction_indexes

            rebuild_transaction_indexes(self)
            entries = lookups.aborted_transactions(self.segments, offset, next_offset)
        return [(entry.producer_id, entry.first_offset) for entry in entries]

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or behind `timestamp` (ms), None when there is none."""
        return lookups.offset_for_timestamp(self.segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp."""
        return lookups.max_timestamp_offset(self.segments)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def active_producers(self) -> list[ProducerEntry]:
        """The producers known to the log (DescribeProducers), by id."""
        return sorted(self.producers.entries.values(), key=lambda entry: entry.producer_id)

    # -- shape --------------------------------------------------------------------------------

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new segment at the log's end (or at `base_offset` behind it).

        Raises OSError; as after an append that failed, the log then takes no more for now.
        """
        try:
            return maintenance.roll(self, base_offset)
        except OSError as error:
            self._write_failed(error, [])
            raise

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start (DeleteRecords); returns it. OFFSET_OUT_OF_RANGE above the HW."""
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.name} since "
                f"it is larger than the high watermark {self.high_watermark}",
            )
        self.move_start(offset)
        return self.log_start_offset

    def move_start(self, offset: int) -> None:
        """Raise the log's start; nothing happens below the present one."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self.producers.log_start_moved(offset)
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        if self.high_watermark < offset:
            self.update_high_watermark(offset)

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on (a follower that diverged from its leader).

        Raises KafkaError(KAFKA_STORAGE_ERROR); after a shortage `mend` gets to its end.
        """
        self.write_tail()
        self._truncate(lambda: maintenance.truncate_to(self, offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin anew at `offset`."""
        self._tail.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "truncated"))
        self._truncate(lambda: maintenance.truncate_fully(self, offset))

    def _truncate(self, truncation: Callable[[], None]) -> None:
        try:
            truncation()
        except OSError as error:
            self.damage.begun = truncation
            self.fail(error)
            assert self.error is not None
            raise anew(self.error) from None

    def delete_old_segments(self, wall_ms: int, segments_max: int = 1 << 31) -> int:
        """Apply retention to the oldest segments; returns how many were given up."""
        from kwire.log.partition import retention

        return retention.delete_old_segments(self, wall_ms, segments_max)

    def close(self, *, sync: bool = False) -> None:
        """Write the tail, trim the indexes, snapshot the producers, close the files.

        With `sync` all of it is durable afterwards: a clean stop. Blocks for the syncs.
        """
        if self.is_closed:
            return
        request = self.begin_close()
        if sync:
            try:
                sync_files(self.files, request)
            except OSError as error:
                self.fail(error, lost=True)
        self.end_close(is_durable=sync)

    def begin_close(self) -> SyncRequest:
        """The first half of a close: write everything; returns what has to be synced then."""
        request = SyncRequest()
        try:
            if self.error is None:
                self._tail.write(self.segments.active)
            if self.error is None:
                request.paths += self.segments.active.finish_indexes()
                request.paths += self.save_snapshot()
                self.save_epochs()
                if request.paths:
                    self.has_new_files = True
                request.add(self.sync_request(self._written_offset))
        except OSError as error:
            self.fail(error)
        return request

    def end_close(self, *, is_durable: bool) -> None:
        """The second half: close the files, after the syncs if there were any."""
        if is_durable and self.error is None:
            self.recovery_point = self._written_offset
        self.is_closed = True
        for segment in self.segments:
            segment.close()

    def relocate(self, path: str) -> None:
        """Rename the log's directory. Raises OSError."""
        self.files.rename(self.directory, path)
        self.directory = path
        self.snapshots = self.snapshots.relocated(path)
        for segment in self.segments:
            segment.relocate(path)

    def abandon(self) -> None:
        """Close the files and nothing else: the log is deleted, or the node is killed (tests)."""
        self.is_closed = True
        self._tail.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is closed"))
        for segment in self.segments:
            segment.is_deleted = True
            segment.close()

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.log_start_offset}..{self.log_end_offset})"
