"""The log of one partition: appending, reading, offsets, producers, leader epochs.

Three ends are told apart: `_next_offset` is what the next batch gets, `_written_offset` is what
the file holds, `log_end_offset` is what others may see. The last two differ only while a flush
that `flush.messages` asks for is under way. A log is touched by the loop's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kwire.clock import Clock
from kwire.log import lookups, maintenance, reading
from kwire.log.appending import (
    Marker,
    check_follower_batches,
    check_leader_batches,
    read_marker,
    rules_of,
    split,
)
from kwire.log.epochs import LeaderEpochs
from kwire.log.files import Buffer, Files, write_atomically
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.log_config import LogConfig
from kwire.log.producer_snapshot import SnapshotFiles
from kwire.log.producers import ONGOING, BatchMetadata, ProducerEntry, Producers, VerificationGuard
from kwire.log.scheduling import Scheduler
from kwire.log.segment import DamagedIndexError, Segment
from kwire.log.segments import Segments
from kwire.log.tail import Tail
from kwire.log.transaction_index import AbortedTransaction
from kwire.log.types import AppendInfo, FetchSlices, Isolation, Origin, TimestampOffset
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader
from kwire.protocol.records.validation import validate_for_append

logger = logging.getLogger(__name__)

EPOCHS_FILE = "leader-epoch-checkpoint"
DONE: Pending[None] = Pending.completed(None)


class _Placed(NamedTuple):
    """A checked batch, alone in `data`."""

    header: BatchHeader
    data: Buffer
    max_timestamp: int
    marker: Marker | None
    is_owned: bool


class PartitionLog:
    """One partition's log. Made by `recovery.open_log`; see `PartitionLog.open`.

    `on_error(log, error, lost)` hears of a failed write or sync: the log refuses appends from then
    on (KAFKA_STORAGE_ERROR) and goes on serving what it has. After a failed sync (`lost`) nothing
    in its log directory may be trusted to become durable.
    """

    def __init__(
        self,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        clock: Clock,
        *,
        files: Files,
        scheduler: Scheduler,
        flusher: Flusher | None = None,
        producer_expiration_ms: int = 86_400_000,
        verify_transactions: bool = True,
        on_error: Callable[[PartitionLog, Exception, bool], None] | None = None,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.name = f"{topic}-{partition}"
        self.clock = clock
        self.files = files
        self.scheduler = scheduler
        self.flusher = flusher or Flusher(files, scheduler)
        self.segments = Segments()
        self.leader_epochs = LeaderEpochs(self._save_epochs)
        self.producers = Producers(
            self.name, expiration_ms=producer_expiration_ms, verify=verify_transactions
        )
        self.snapshots = SnapshotFiles(files, directory)
        self.log_start_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.last_flush_ms = 0
        self.jitter_ms = 0
        self.is_closed = False
        self.error: KafkaError | None = None
        self.log_end_offset = 0
        self._next_offset = 0
        self._written_offset = 0
        self.has_new_files = False
        self._epochs_unsynced = False
        self._tail = Tail(self._write_failed, self._written, scheduler)
        self._on_error = on_error
        self._first_unstable: int | None = None
        self.config = config
        self.rules = rules_of(config)

    @classmethod
    def open(
        cls,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        clock: Clock,
        **options: object,
    ) -> PartitionLog:
        """Open or create the log in `directory`; options as `recovery.open_log` takes them."""
        from kwire.log.recovery import open_log

        return open_log(directory, topic, partition, topic_id, config, clock, **options)  # type: ignore[arg-type]

    # -- configuration ------------------------------------------------------------------------

    def reconfigure(self, config: LogConfig) -> None:
        """Take over changed topic configs; segments keep their size until they are rolled."""
        self.config = config
        self.rules = rules_of(config)
        self.segments.active.index_interval_bytes = config.index_interval_bytes

    # -- offsets ------------------------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """The offset of the next batch, behind those that still wait to be written."""
        return self._next_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it everything is decided and below the high watermark."""
        unstable = self._first_unstable
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments' logs."""
        return self.segments.size_bytes

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept between the log's start and end; returns it."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        if offset != self.high_watermark:
            self.high_watermark = offset
            self.producers.high_watermark_updated(offset)
            self._first_unstable = self.producers.first_unstable_offset()
        return offset

    # -- appending ----------------------------------------------------------------------------

    def append_as_leader(
        self,
        batches: Buffer | Sequence[Buffer],
        *,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        wall_ms: int | None = None,
    ) -> AppendInfo:
        """Check, stamp and append; offsets are given at once, `written` tells when they hold.

        A writable buffer is stamped in place, a small batch is copied: the caller may reuse the
        memory once `written` is done. Raises KafkaError with Kafka's codes: CORRUPT_MESSAGE,
        INVALID_RECORD, INVALID_TIMESTAMP (InvalidRecordsError names the records),
        MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        self._check_writable()
        now_ms = self.clock.wall_ms() if wall_ms is None else wall_ms
        found = split(batches)
        check_leader_batches(found, self.config, origin, self.name)
        base_offset = self._next_offset
        placed: list[_Placed] = []
        for header, view in found:
            valid = validate_for_append(
                view,
                0,
                header,
                self.rules,
                client=origin == Origin.CLIENT,
                wall_ms=now_ms,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
            )
            header = valid.header
            marker: Marker | None = None
            if header.producer_id >= 0:
                if len(found) > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_RECORD, "A batch with a producer id comes alone"
                    )
                if header.is_control:
                    marker = self._check_marker(header, valid.buffer, origin, transaction_version)
                else:
                    known = self.producers.check_data(header, base_offset, origin, guard)
                    if known is not None:
                        return self._duplicate(known)
            is_owned = valid.buffer is not view
            placed.append(_Placed(header, valid.buffer, valid.info.max_timestamp, marker, is_owned))
            base_offset = header.next_offset
        return self._append(placed, now_ms if self.config.is_log_append_time else -1)

    def append_as_follower(self, batches: Buffer | Sequence[Buffer]) -> AppendInfo:
        """Append what a leader sent as it is: offsets, epochs and timestamps are kept.

        Raises KafkaError(CORRUPT_MESSAGE) for batches that do not follow on the log or whose
        checksum does not hold (nothing is appended then), KAFKA_STORAGE_ERROR.
        """
        self._check_writable()
        found = split(batches)
        check_follower_batches(found, self._next_offset, self.leader_epochs.latest, self.name)
        placed: list[_Placed] = []
        for header, view in found:
            marker = None
            if header.producer_id >= 0 and header.is_control:
                marker = read_marker(view)
            placed.append(_Placed(header, view, header.max_timestamp, marker, False))
        return self._append(placed, -1)

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        sequence: int = 0,
        supports_epoch_bump: bool = True,
    ) -> VerificationGuard:
        """A guard for a transactional append (KIP-890); `producers.ONGOING` needs no asking."""
        return self.producers.begin_verification(
            producer_id,
            producer_epoch,
            sequence=sequence,
            supports_epoch_bump=supports_epoch_bump,
            wall_ms=self.clock.wall_ms(),
        )

    def needs_verification(self, guard: VerificationGuard) -> bool:
        """Whether the coordinator has to be asked before an append with `guard`."""
        return self.producers.verify and guard is not ONGOING

    def assign_epoch(self, leader_epoch: int) -> None:
        """Become leader: the epoch begins at the log's end, before anything is appended."""
        self.leader_epochs.assign(leader_epoch, self._next_offset)

    def _check_writable(self) -> None:
        if self.error is not None:
            raise self.error
        if self.is_closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {self.name} is closed")

    def _check_marker(
        self, header: BatchHeader, data: Buffer, origin: Origin, transaction_version: int
    ) -> Marker | None:
        marker = read_marker(data)
        if marker is not None:
            self.producers.check_marker(
                header, marker.coordinator_epoch, header.base_offset, origin, transaction_version
            )
        return marker

    def _duplicate(self, known: BatchMetadata) -> AppendInfo:
        return AppendInfo(
            known.first_offset,
            known.last_offset,
            known.timestamp if self.config.is_log_append_time else -1,
            self.log_start_offset,
            DONE if known.last_offset < self.log_end_offset else self._tail.pending(),
            duplicate=True,
        )

    def _append(self, placed: list[_Placed], append_time_ms: int) -> AppendInfo:
        """Give checked batches their places and their data to the tail."""
        try:
            for batch in placed:
                self._place(batch)
            written = self._tail.submit(self.segments.active)
        except OSError as error:
            self._tail.discard(error)
            self._write_failed(error, [])
        if self.error is not None:
            raise self.error
        first, last = placed[0].header, placed[-1].header
        return AppendInfo(
            first.base_offset,
            last.last_offset,
            append_time_ms,
            self.log_start_offset,
            written,
            record_count=last.next_offset - first.base_offset,
            size_bytes=sum(batch.header.size_bytes for batch in placed),
        )

    def _place(self, batch: _Placed) -> None:
        header = batch.header
        segment = self.segments.active
        if maintenance.should_roll(self, segment, header, batch.max_timestamp):
            segment = self.roll(header.base_offset)
        segment.assign(header, header.base_offset, batch.max_timestamp)
        self._next_offset = header.next_offset
        if header.partition_leader_epoch > self.leader_epochs.latest:
            self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            self.note_producer(segment, header, batch.marker)
        self._tail.add(batch.data, batch.is_owned)

    def note_producer(
        self, segment: Segment, header: BatchHeader, marker: Marker | None
    ) -> AbortedTransaction | None:
        """Take a batch over into the producer state; returns the abort that it completed."""
        producers = self.producers
        if not header.is_control:
            producers.append_data(header, header.base_offset)
            if self._first_unstable is None and header.is_transactional:
                self._first_unstable = producers.first_unstable_offset()
            return None
        if marker is None:
            return None
        completed = producers.append_marker(
            header,
            header.base_offset,
            marker.coordinator_epoch,
            marker.timestamp,
            aborted=marker.aborted,
        )
        if completed is None:
            return None
        stable = producers.last_stable_offset_after(completed)
        producers.complete_transaction(completed)
        if not completed.aborted:
            return None
        entry = AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )
        segment.add_aborted_transaction(entry)
        return entry

    def write_tail(self) -> None:
        """Write what waits for the end of the loop's turn now."""
        self._tail.write(self.segments.active)
        if self.error is not None:
            raise self.error

    def _written(self, waiting: list[Pending[None]]) -> None:
        """The tail is in the file: make it visible, or flush first where that was asked for."""
        self._written_offset = self._next_offset
        self.producers.end_offset = self._next_offset
        if self._written_offset - self.recovery_point < self.config.flush_messages:
            self.log_end_offset = self._written_offset
            for pending in waiting:
                pending.complete(None)
            return
        target = self._written_offset

        def flushed(done: Pending[None]) -> None:
            error = done.error()
            if error is None:
                self.log_end_offset = max(self.log_end_offset, target)
            for pending in waiting:
                if error is None:
                    pending.complete(None)
                else:
                    pending.fail(self.error or error)

        self._flush_to(target).add_done_callback(flushed)

    def _write_failed(self, error: OSError, waiting: list[Pending[None]]) -> None:
        """Cut back to the last whole batch and refuse appends; what is there stays readable."""
        segment = self.segments.active
        self.fail(error)
        try:
            segment.truncate_to(self._written_offset, segment.size_bytes)
        except OSError as second:
            logger.error("%s: cannot be cut back to its last batch: %s", segment.log_path, second)
        self._next_offset = self._written_offset
        for pending in waiting:
            assert self.error is not None
            pending.fail(self.error)

    def fail(self, error: Exception, *, lost: bool = False) -> None:
        """Refuse appends from now on: a write or (`lost`) a sync has failed."""
        if self.error is None:
            logger.error("%s: %s; the log takes no more appends", self.directory, error)
            self.error = KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Error while writing to the log of {self.name}: {error}",
            )
            if self._on_error is not None:
                self._on_error(self, error, lost)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        isolation: Isolation = Isolation.LOG_END,
        min_one: bool = True,
    ) -> FetchSlices | Pending[FetchSlices]:
        """Whole batches from the one that holds `offset` on, up to what `isolation` shows.

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
                    self.segments, offset, bytes_max, offset_max, min_one=min_one
                )
            except OSError as error:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR, f"Error while reading {self.name}: {error}"
                ) from error
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
        )

    def _aborted(self, offset: int, next_offset: int) -> list[tuple[int, int]]:
        try:
            entries = lookups.aborted_transactions(self.segments, offset, next_offset)
        except DamagedIndexError:
            from kwire.log.recovery import rebuild_transaction_indexes

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
        """Begin a new segment at the log's end (or at `base_offset` behind it)."""
        return maintenance.roll(self, base_offset)

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
        self._first_unstable = self.producers.first_unstable_offset()
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        if self.high_watermark < offset:
            self.update_high_watermark(offset)

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on (a follower that diverged from its leader)."""
        self.write_tail()
        maintenance.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin anew at `offset`."""
        self._tail.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "truncated"))
        maintenance.truncate_fully(self, offset)

    def set_end(self, offset: int) -> None:
        """The log ends at `offset`: used by recovery and truncation only."""
        self._next_offset = self._written_offset = self.log_end_offset = offset
        self.producers.end_offset = offset
        self._first_unstable = self.producers.first_unstable_offset()
        if self.high_watermark > offset:
            self.high_watermark = offset

    def delete_old_segments(self, wall_ms: int) -> int:
        """Apply retention; returns how many segments were given up."""
        from kwire.log import retention

        return retention.delete_old_segments(self, wall_ms)

    # -- durability ---------------------------------------------------------------------------

    def flush(self) -> Pending[None]:
        """Make everything written durable and move the recovery point; KAFKA_STORAGE_ERROR."""
        if self._tail:
            self.write_tail()
        return self._flush_to(self._written_offset)

    def _flush_to(self, offset: int) -> Pending[None]:
        """Sync the segments that hold offsets from the recovery point up to `offset`."""
        result: Pending[None] = Pending()
        if offset <= self.recovery_point:
            result.complete(None)
            return result
        segments = [
            segment
            for segment in self.segments.starting_at(self.recovery_point)
            if segment.base_offset < offset
        ]

        def synced(done: Pending[None]) -> None:
            error = done.error()
            if error is not None:
                self.fail(error, lost=True)
                result.fail(self.error or error)
                return
            self.recovery_point = max(self.recovery_point, min(offset, self._written_offset))
            self.last_flush_ms = self.clock.wall_ms()
            result.complete(None)

        request = SyncRequest()
        for segment in segments:
            segment.add_to_sync(request)
        if self.has_new_files:
            self.has_new_files = False
            request.directories.append(self.directory)
        self.flusher.request(request).add_done_callback(synced)
        return result

    def flush_up_to(self, offset: int) -> Pending[None]:
        """Make the segments below `offset` durable (after a roll)."""
        return self._flush_to(min(offset, self._written_offset))

    def close(self, *, sync: bool = False) -> None:
        """Write the tail, trim the indexes, snapshot the producers, close the files.

        With `sync` all of it is durable afterwards: a clean stop. Blocks for the syncs.
        """
        if self.is_closed:
            return
        try:
            if self.error is None:
                self._tail.write(self.segments.active)
            if self.error is None:
                self.segments.active.finish_indexes(sync=sync)
                self.save_snapshot(sync=sync)
                self.save_epochs(sync=sync)
                if sync:
                    self._sync_now()
        except OSError as error:
            self.fail(error, lost=True)
        self.is_closed = True
        for segment in self.segments:
            segment.close()

    def _sync_now(self) -> None:
        if self.recovery_point < self._written_offset:
            for segment in self.segments.starting_at(self.recovery_point):
                self.files.fdatasync(segment.handle)
            self.recovery_point = self._written_offset
        if self.has_new_files:
            self.files.sync_directory(self.directory)
            self.has_new_files = False

    def abandon(self) -> None:
        """Close the files and nothing else: the log is deleted, or the node is killed (tests)."""
        self.is_closed = True
        self._tail.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is closed"))
        for segment in self.segments:
            segment.is_deleted = True
            segment.close()

    def save_snapshot(self, *, sync: bool = False) -> None:
        """A producer snapshot at the log's end, unless there is one or the log is empty."""
        if self._written_offset > max(self.snapshots.latest, 0):
            self.snapshots.write(self._written_offset, self.producers.entries.values(), sync=sync)

    # -- the epoch file -----------------------------------------------------------------------

    def _save_epochs(self, data: bytes) -> None:
        self._epochs_unsynced = True
        try:
            write_atomically(self.files, f"{self.directory}/{EPOCHS_FILE}", data, sync=False)
        except OSError as error:
            self.fail(error)

    def save_epochs(self, *, sync: bool = False) -> None:
        """Write the epoch file once more where it may not be durable yet."""
        path = f"{self.directory}/{EPOCHS_FILE}"
        if self._epochs_unsynced or not self.files.exists(path):
            write_atomically(self.files, path, self.leader_epochs.encode(), sync=sync)
            self._epochs_unsynced = not sync

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.log_start_offset}..{self.log_end_offset})"
