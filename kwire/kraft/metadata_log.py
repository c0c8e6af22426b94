"""`__cluster_metadata-0` on disk: the log, the snapshots, `quorum-state`, and how raft sees them.

Opening never trusts a clean stop: like Kafka it looks at every batch (the metadata log's recovery
point is in no checkpoint file). After a kill what is damaged ends the log, as it may never have
been durable. A clean stop notes where the log ended durably in `kwire.end`, which Kafka passes
over; when something is missing below that, the node does not start: it would be a voter that has
forgotten what it acknowledged, or go on without topics that it has promised.

`kwire.end` is two lines of text: the version `0`, and the offset.

When the newest snapshot is ahead of the log - a follower died between storing it and emptying its
log - the log starts anew at the snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from kwire.clock import Clock
from kwire.kraft.raft.control_records import ControlRecord, build_control_batch, decode_control
from kwire.kraft.raft.election import ElectionState, QuorumStateError
from kwire.kraft.raft.log_state import LogState
from kwire.kraft.raft.types import (
    BOOTSTRAP_SNAPSHOT,
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    OffsetAndEpoch,
    check,
)
from kwire.kraft.raft.voters import VoterHistory, VoterSet
from kwire.kraft.snapshots.content import (
    SnapshotError,
    parse_snapshot,
    parse_snapshot_name,
    read_header,
    snapshot_fault,
)
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.log.files import Files, SystemFiles, UnfitFileError, write_atomically
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog, known_log
from kwire.log.recovery.opening import open_log
from kwire.log.recovery.quarantine import QUARANTINE_SUFFIX
from kwire.log.recovery.repair import LostRecordsError
from kwire.log.scheduling import ImmediateScheduler, Scheduler
from kwire.log.types import FetchSlices, Isolation, Origin
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.metadata_records import MetadataRecord, VersionedRecord, decode_record

QUORUM_STATE_FILE = "quorum-state"
END_FILE = "kwire.end"
logger = logging.getLogger(__name__)
PARTITION_METADATA_FILE = "partition.metadata"
LOG_DIRECTORY = f"{METADATA_TOPIC}-{METADATA_PARTITION}"
READ_BYTES = 1 << 20
SNAPSHOT_HEADER_BYTES = 1 << 16
FILE_DELETE_DELAY_MS = 60_000
_MARKERS = (m.BeginTransactionRecord, m.EndTransactionRecord, m.AbortTransactionRecord)


class MetadataBatch(NamedTuple):
    """A data batch of the metadata log: `records` are messages, their offsets `base_offset` on."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: list[MetadataRecord]


def metadata_log_config(
    *, segment_bytes: int = 1_073_741_824, segment_ms: int = 604_800_000
) -> LogConfig:
    """The settings of the metadata log: it is trimmed at snapshots, never by age or size."""
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
        file_delete_delay_ms=FILE_DELETE_DELAY_MS,
    )


class MetadataLog:
    """The metadata partition of one node. Called from the loop's thread only."""

    def __init__(
        self, log: PartitionLog, snapshots: SnapshotFiles, files: Files, scheduler: Scheduler
    ) -> None:
        self.log = log
        self.snapshots = snapshots
        self.directory = snapshots.directory
        self._files = files
        self._scheduler = scheduler
        self.was_short = False  # what is appended next was tried before

    @classmethod
    def open(
        cls,
        log_dir: str,
        config: LogConfig,
        clock: Clock,
        *,
        files: Files | None = None,
        scheduler: Scheduler | None = None,
        known: KnownLog | None = None,
    ) -> MetadataLog:
        """Open or create `LOG_DIR/__cluster_metadata-0`. What is `known` of its files
        (`write_out`) is not looked up in them.

        Raises OSError, and SnapshotError when something is missing that was durable.
        """
        files = files or SystemFiles()
        scheduler = scheduler or ImmediateScheduler()
        directory = f"{log_dir}/{LOG_DIRECTORY}"
        files.make_directory(directory)
        snapshots = SnapshotFiles(files, directory)
        end_file = f"{directory}/{END_FILE}"
        try:
            durable_below = _noted_end(files, end_file, snapshots)
            log = open_log(
                directory,
                METADATA_TOPIC,
                METADATA_PARTITION,
                METADATA_TOPIC_ID,
                config,
                clock,
                files=files,
                scheduler=scheduler,
                verify_transactions=False,
                durable_below=durable_below,
                known=known,
            )
        except LostRecordsError as error:
            raise SnapshotError(
                f"{error}: what was durable at the last stop is missing; restore the directory "
                "from a copy, or empty it, format it anew and add it to the voters again (to go "
                f"on without what is missing, remove {END_FILE})"
            ) from None
        if known is not None:
            log.local.doubt_durability(0)
        if files.exists(end_file):
            files.unlink(end_file)
            files.sync_directory(directory)
        metadata_log = cls(log, snapshots, files, scheduler)
        metadata_log._write_partition_metadata()
        return metadata_log

    def write_out(self) -> KnownLog | None:
        """Have the files be as a clean stop leaves them, and go on; what they hold then. None
        where an opening has to look. Blocks."""
        self.log.begin_close(goes_on=True)
        return known_log(self.log, _is_beside)

    def _write_partition_metadata(self) -> None:
        path = f"{self.directory}/{PARTITION_METADATA_FILE}"
        if not self._files.exists(path):
            content = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
            write_atomically(self._files, path, content, sync=False)

    # ---- what raft starts from

    def log_state(self) -> LogState:
        """Offsets, epochs and snapshots; empties a log that its newest snapshot has overtaken.

        What was found is not known to be durable: the first flush will make it so.
        """
        log = self.log
        found = self._whole_snapshots()
        state = LogState(
            start_offset=log.log_start_offset,
            end_offset=log.log_end_offset,
            flushed_offset=log.recovery_point,
            high_watermark=log.log_start_offset,
            epochs=list(log.leader_epochs.entries),
            snapshots=list(found),
        )
        latest = state.latest_snapshot
        if latest is not None:
            last_epoch = state.epochs[-1][0] if state.epochs else 0
            if latest.epoch > last_epoch or (
                latest.epoch == last_epoch and latest.offset > state.end_offset
            ):
                log.truncate_fully_and_start_at(latest.offset)
                state.start_at(latest)
            state.high_watermark = max(state.high_watermark, latest.offset)
        known = state.snapshots
        older = [entry for entry in self.snapshots.recover() if entry not in known]
        self.delete_snapshots(older)
        if state.start_offset > 0 and (latest is None or latest.offset < state.start_offset):
            raise SnapshotError(
                f"{self.directory}: the log starts at {state.start_offset}, and no snapshot "
                f"holds what was before"
            )
        return state

    def _whole_snapshots(self) -> list[OffsetAndEpoch]:
        """The snapshots that count, the newest of them checked.

        A damaged one is set aside where the log or an older one still has what it held.
        """
        start_offset = self.log.log_start_offset
        found = [entry for entry in self.snapshots.recover() if entry.offset >= start_offset]
        while found:
            newest = found[-1]
            reason = snapshot_fault(self.snapshots.read(newest))
            if not reason:
                break
            path = self.snapshots.path(newest)
            is_needed = start_offset > 0 and len(found) == 1
            if is_needed or newest.offset > self.log.log_end_offset:
                raise SnapshotError(
                    f"{path} cannot be read: {reason}; the log begins behind what it holds: "
                    "restore the file, or the directory from another voter"
                )
            if newest == BOOTSTRAP_SNAPSHOT:
                raise SnapshotError(
                    f"{path} cannot be read: {reason}; it names the voters: restore it from another"
                )
            logger.error("%s: %s; going on without it, kept as .quarantine", path, reason)
            self._files.rename(path, path + QUARANTINE_SUFFIX)
            found.pop()
        return found

    def voter_history(self, state: LogState, static: VoterSet | None) -> VoterHistory:
        """The voters by the newest snapshot and the control records behind it."""
        history = VoterHistory(static)
        start = state.start_offset
        latest = state.latest_snapshot
        if latest is not None:
            head = self.snapshots.read_piece(latest, 0, SNAPSHOT_HEADER_BYTES)
            _, level, voters = read_header(head)
            if level is not None:
                history.add_level(latest.offset - 1, level)
            if voters is not None:
                history.add_voters(latest.offset - 1, voters)
            start = max(start, latest.offset)
        for data in self.read_chunks(start, state.end_offset):
            for position, header in records.iterate_headers(data):
                if not header.is_control or header.base_offset < start:
                    continue
                for record in records.read_batch(data, position):
                    message = decode_control(record.offset, record.key, record.value).message
                    if isinstance(message, m.KRaftVersionRecord):
                        history.add_level(record.offset, message.kraft_version)
                    elif isinstance(message, m.VotersRecord):
                        history.add_voters(record.offset, VoterSet.from_record(message))
        return history

    def read_election(self) -> ElectionState | None:
        """`quorum-state`, None if there is none; raises QuorumStateError."""
        path = f"{self.directory}/{QUORUM_STATE_FILE}"
        if not self._files.exists(path):
            return None
        try:
            return ElectionState.decode(self._files.read_file(path))
        except (QuorumStateError, UnfitFileError) as error:
            raise QuorumStateError(f"{path}: {error}; restore it from a copy") from None

    def write_election(self, election: ElectionState, kraft_version: int) -> Pending[None]:
        """Replace `quorum-state` durably, beside the loop."""
        path = f"{self.directory}/{QUORUM_STATE_FILE}"
        content = election.encode(kraft_version)
        return self._scheduler.run(lambda: write_atomically(self._files, path, content))

    def bootstrap_records(self) -> list[VersionedRecord] | None:
        """The (record, version) of the formatted checkpoint, None without one."""
        if not self._files.exists(self.snapshots.path(BOOTSTRAP_SNAPSHOT)):
            return None
        found: list[VersionedRecord] = []
        content = self.snapshots.read(BOOTSTRAP_SNAPSHOT)
        parse_snapshot(content)
        for position, header in records.iterate_headers(content):
            if not header.is_control:
                for record in records.read_batch(content, position):
                    assert record.value is not None
                    found.append(decode_record(record.value))
        return found

    # ---- reading

    def read_chunks(self, offset: int, end_offset: int) -> Iterator[bytes | memoryview]:
        """Whole batches from the one with `offset` on, about a megabyte at a time."""
        while offset < end_offset:
            slices = self.log.read(offset, READ_BYTES, isolation=Isolation.LOG_END)
            assert isinstance(slices, FetchSlices), "the metadata log is read from memory"
            check(bool(slices.size_bytes), f"the metadata log cannot be read at {offset}")
            for data in slices.buffers:
                yield memoryview(data)
            offset = slices.next_offset

    def read_batches(self, offset: int, end_offset: int) -> Iterator[MetadataBatch]:
        """The batches from `offset` up to `end_offset`; control batches come without records."""
        for data in self.read_chunks(offset, end_offset):
            for batch in decode_batches(data):
                if batch.base_offset >= end_offset:
                    return
                if batch.base_offset >= offset:
                    yield batch

    def read_runs(self, offset: int, end_offset: int) -> Iterator[MetadataBatch]:
        """As `read_batches`, for whoever replays them all at once: batches of one epoch that follow
        each other come as one, up to a megabyte, but for those that begin or end a transaction."""
        run: list[MetadataBatch] = []
        size_bytes = 0
        for batch in self.read_batches(offset, end_offset):
            is_plain = _is_plain(batch)
            is_full = size_bytes + batch.size_bytes > READ_BYTES
            if run and (is_full or not is_plain or batch.epoch != run[-1].epoch):
                yield _joined(run, size_bytes)
                run, size_bytes = [], 0
            if is_plain:
                run.append(batch)
                size_bytes += batch.size_bytes
            else:
                yield batch
        if run:
            yield _joined(run, size_bytes)

    # ---- writing

    def append_control(
        self, base_offset: int, epoch: int, entries: tuple[ControlRecord, ...], wall_ms: int
    ) -> int:
        """Build and append a control batch; its size in bytes."""
        batch = build_control_batch(
            entries, base_offset=base_offset, epoch=epoch, timestamp_ms=wall_ms
        )
        return self.append_batch(base_offset, epoch, batch, wall_ms)

    def append_batch(
        self, base_offset: int, epoch: int, batch: bytes | bytearray, wall_ms: int
    ) -> int:
        """Append the leader's batch; its size in bytes."""
        info = self.log.append_as_leader(
            batch, leader_epoch=epoch, origin=Origin.RAFT, wall_ms=wall_ms
        )
        check(
            info.base_offset == base_offset,
            f"the log appended at {info.base_offset}, raft at {base_offset}",
        )
        self.log.write_tail()
        return len(batch)

    def append_fetched(self, base_offset: int, batches: bytes) -> None:
        """Append what the leader sent from `base_offset` on. May be done again after a shortage,
        which may have let the first of several batches through."""
        end_offset = self.log.next_offset
        if base_offset < end_offset and self.was_short:
            at = [p for p, h in records.iterate_headers(batches) if h.base_offset >= end_offset]
            batches = batches[at[0] if at else len(batches) :]
            base_offset = end_offset
        if not batches:
            return
        info = self.log.append_as_follower(batches)
        check(
            info.base_offset == base_offset,
            f"the log appended at {info.base_offset}, raft at {base_offset}",
        )
        self.log.write_tail()

    def truncate_to(self, end_offset: int) -> None:
        self.log.truncate_to(end_offset)

    def start_at(self, snapshot: OffsetAndEpoch) -> None:
        """Empty the log, which goes on at a stored snapshot; older snapshots are deleted."""
        self.log.truncate_fully_and_start_at(snapshot.offset)
        older = [entry for entry in self.snapshots.recover() if entry.offset < snapshot.offset]
        self.delete_snapshots(older)

    def delete_before(self, snapshot: OffsetAndEpoch, gone: tuple[OffsetAndEpoch, ...]) -> None:
        """Start the log at a snapshot: older segments and the snapshots `gone` are deleted."""
        self.log.delete_records_before(snapshot.offset)
        self.log.delete_old_segments(self.log.clock.wall_ms())
        self.delete_snapshots(list(gone))

    def delete_snapshots(self, gone: list[OffsetAndEpoch]) -> None:
        for snapshot in gone:
            path = self.snapshots.mark_deleted(snapshot)
            if path is not None:
                remove = partial(self.snapshots.remove, path)
                self._scheduler.call_later(FILE_DELETE_DELAY_MS, remove)

    def flush(self) -> Pending[None]:
        return self.log.flush()

    def close(self) -> None:
        """Sync and close everything; where that goes well the log's end is noted."""
        self.snapshots.close()
        if self.log.is_closed:
            return
        end_offset = self.log.log_end_offset
        self.log.close(sync=True)
        if self.log.error is None:
            path = f"{self.directory}/{END_FILE}"
            try:
                write_atomically(self._files, path, b"0\n%d\n" % end_offset)
            except OSError as error:
                logger.warning("%s cannot be written: %s", path, error)


def _noted_end(files: Files, path: str, snapshots: SnapshotFiles) -> int:
    """Up to where the log has to be whole, 0 where nothing was noted.

    Nor where the newest snapshot holds it all: the log may have been emptied for it.
    """
    if not files.exists(path):
        return 0
    version, _, end = files.read_file(path).strip().partition(b"\n")
    if version != b"0" or not end.isdigit():
        logger.warning("%s is damaged; going on without it", path)
        return 0
    found = snapshots.recover()
    if found and found[-1].offset >= int(end) and not snapshot_fault(snapshots.read(found[-1])):
        return 0
    return int(end)


def _is_plain(batch: MetadataBatch) -> bool:
    """Whether it has records, and none that begins or ends a metadata transaction."""
    return bool(batch.records) and not any(isinstance(one, _MARKERS) for one in batch.records)


def _joined(run: list[MetadataBatch], size_bytes: int) -> MetadataBatch:
    first, last = run[0], run[-1]
    if first is last:
        return first
    all_records = [record for batch in run for record in batch.records]
    return MetadataBatch(
        first.base_offset, last.last_offset, last.epoch, last.timestamp_ms, size_bytes, all_records
    )


def _is_beside(name: str) -> bool:
    """Whether a file of the directory is raft's, which every start reads."""
    return name == QUORUM_STATE_FILE or parse_snapshot_name(name) is not None


def decode_batches(data: bytes | memoryview) -> Iterator[MetadataBatch]:
    """The batches in a buffer as metadata; raises UnsupportedRecordError (decision 11)."""
    for position, header in records.iterate_headers(data):
        metadata: list[MetadataRecord] = []
        if not header.is_control:
            for record in records.read_batch(data, position, header):
                check(record.value is not None, f"metadata record {record.offset} has no value")
                assert record.value is not None
                metadata.append(decode_record(record.value)[0])
        yield MetadataBatch(
            header.base_offset,
            header.last_offset,
            header.partition_leader_epoch,
            header.max_timestamp,
            header.size_bytes,
            metadata,
        )
