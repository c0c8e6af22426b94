"""The state of one partition's log, its ends, failures and flushes.

Three ends are told apart: `next_offset` is what the next batch gets, `_written_offset` is what
the file holds, `log_end_offset` is what others may see. The last two differ only while a flush
that `flush.messages` asks for is under way. A log is touched by the loop's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from zlib import crc32

from kwire.clock import Clock
from kwire.kept_errors import anew, kept
from kwire.log.files import Files, NotBegunError, passes, write_atomically
from kwire.log.flushing import Flusher, SyncRequest, sync_files
from kwire.log.partition.batch_rules import rules_of
from kwire.log.partition.config import LogConfig
from kwire.log.partition.leader_epochs import LeaderEpochs
from kwire.log.partition.producer_snapshots import SnapshotFiles
from kwire.log.partition.producers import Producers
from kwire.log.partition.write_buffer import WriteBuffer
from kwire.log.recovery import cutting as mending
from kwire.log.scheduling import Scheduler
from kwire.log.segment.open_file_limit import OpenSegments
from kwire.log.segment.segment import Segment
from kwire.log.segment.segment_list import Segments
from kwire.pending import Pending, settle_all
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

EPOCHS_FILE = "leader-epoch-checkpoint"


class LogBase:
    """What appending, reading, recovery and retention share.

    `on_error(log, error, lost)` hears of a failed write or sync: the log refuses appends from then
    on (KAFKA_STORAGE_ERROR) and goes on serving what it has. After a failed sync (`lost`) nothing
    in its log directory may be trusted to become durable. While `is_short` the log has only run
    short of something: `mend` lets it take appends again when that is over.
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
        open_segments: OpenSegments | None = None,
        producer_expiration_ms: int = 86_400_000,
        verify_transactions: bool = True,
        on_error: Callable[[LogBase, Exception, bool], None] | None = None,
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
        self._open_segments = open_segments or OpenSegments()
        self.leader_epochs = LeaderEpochs(self._save_epochs)
        self.producers = Producers(
            self.name, expiration_ms=producer_expiration_ms, verify=verify_transactions
        )
        self.snapshots = SnapshotFiles(files, directory)
        self.log_start_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.durable_below = 0  # everything below has to be there: damage is no torn tail
        self.promised_end = 0  # the log ended there once, durably; what is missing cannot be mended
        self.last_flush_ms = 0
        self.jitter_share = crc32(self.name.encode(), crc32(topic_id))  # of 2**32
        self.is_closed = False
        self.error: KafkaError | None = None
        self.damage = mending.Damage()
        self.log_end_offset = 0
        self._next_offset = 0
        self._written_offset = 0
        self.has_new_files = False
        self._epochs_unsynced = False
        self._epochs_unsaved = False
        self._led_epoch = -1
        self._truncations = 0
        self.unsynced_segments: list[Segment] = []  # sealed, their trimmed indexes not durable yet
        self._tail = WriteBuffer(self._write_failed, self._written, scheduler)
        self.on_error = on_error
        self.on_refused: Callable[[], None] | None = None  # hears of appends while `is_short`
        self.on_truncated: Callable[[LogBase], None] | None = None
        self.config = config
        self._configure()

    # -- configuration ------------------------------------------------------------------------

    def reconfigure(self, config: LogConfig) -> None:
        """Take over changed topic configs; segments keep their size until they are rolled."""
        self.config = config
        self._configure()
        self.segments.active.index_interval_bytes = config.index_interval_bytes

    def join(self, scheduler: Scheduler, flusher: Flusher, open_segments: OpenSegments) -> None:
        """Share these with other logs from now on: a log is opened alone."""
        self.scheduler = scheduler
        self.flusher = flusher
        self._open_segments = open_segments
        self._tail.scheduler = scheduler
        for segment in self.segments:
            segment.attach(flusher.retire, open_segments.opened)

    def add_segment(self, segment: Segment) -> None:
        """Make a segment part of the log."""
        segment.attach(self.flusher.retire, self._open_segments.opened)
        self.segments.add(segment)

    def _configure(self) -> None:
        self.rules = rules_of(self.config, self.name)
        # What the append's short way takes without a closer look at its size.
        self._plain_bytes_max = min(self.config.max_message_bytes, self.config.segment_bytes)

    # -- offsets ------------------------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """The offset of the next batch, behind those that still wait to be written."""
        return self._next_offset

    @property
    def written_offset(self) -> int:
        """Where the file ends."""
        return self._written_offset

    @property
    def is_short(self) -> bool:
        """Whether appends are refused only until a shortage is over."""
        return self.damage.error is not None

    @property
    def last_stable_offset(self) -> int:
        """Below it everything is decided and below the high watermark."""
        unstable = self.producers.first_unstable_offset
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
        self.high_watermark = offset
        if self.producers.first_unstable_offset is not None:
            self.producers.high_watermark_updated(offset)
        return offset

    # -- the tail and failures ----------------------------------------------------------------

    def write_tail(self) -> None:
        """Write what waits for the end of the loop's turn now."""
        self._tail.write(self.segments.active)
        if self.error is not None:
            raise anew(self.error)

    def settle(self) -> None:
        """Finish every append now, with the flush that it waits for: before a change of roles.

        May block for a sync. Raises KafkaError and OSError.
        """
        if self._tail:
            self.write_tail()
        if self.log_end_offset < self._written_offset:
            if self.error is not None and not self.is_short:
                raise anew(self.error)  # a failed sync is not tried again
            try:
                self.sync_now()
            except NotBegunError as error:
                self.fail(error)
                raise
            except OSError as error:
                self.fail(error, lost=True)
                raise
            self.log_end_offset = self._written_offset

    def _written(self, waiting: list[Pending[None]]) -> None:
        """The tail is in the file: make it visible, or flush first where that was asked for."""
        self._written_offset = self._next_offset
        self.producers.written()
        if self._written_offset - self.recovery_point < self.config.flush_messages:
            self.log_end_offset = self._written_offset
            for pending in waiting:
                pending.complete(None)
            return
        target, truncations = self._written_offset, self._truncations

        def flushed(done: Pending[None]) -> None:
            error = done.error()
            if error is None and truncations == self._truncations:
                self.log_end_offset = max(self.log_end_offset, target)
            settle_all(waiting, None if error is None else self.error or error)

        self._flush_to(target).add_done_callback(flushed)

    def _write_failed(
        self, error: OSError, waiting: list[Pending[None]], size_bytes: int = 0
    ) -> None:
        """Cut back to the last whole batch and refuse appends; what is there stays readable."""
        self.fail(error)
        mending.cut_back(self, size_bytes)
        assert self.error is not None
        settle_all(waiting, self.error)

    def take_back_unwritten(self) -> int:
        """Be as before the batches that are not written, in memory; returns where the log ends."""
        end = self._written_offset
        assert self.error is not None
        self._tail.discard(self.error)
        self._next_offset = end
        self.producers.take_back(end)
        if self.leader_epochs.take_back(end, self._led_epoch):
            self._epochs_unsaved = True
        return end

    def fail(self, error: Exception, *, lost: bool = False, for_good: bool = False) -> None:
        """Refuse appends from now on: a write or (`lost`) a sync has failed.

        For good, unless the error is one that passes and nothing is lost.
        """
        if self.error is not None and not self.is_short:
            return
        if passes(error) and not lost and not for_good:
            if self.is_short:
                return
            assert isinstance(error, OSError)
            self.damage.error = kept(error)
            then = "no appends until that is over"
        else:
            self.damage.error = None
            then = "no more appends"
        logger.error("%s: %s; the log takes %s", self.directory, error, then)
        self.error = KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"Error while writing to the log of {self.name}: {error}",
        )
        if self.on_error is not None:
            self.on_error(self, error, lost)

    def mend(self) -> Pending[None]:
        """Take appends again if the shortage is over; see `mending.mend`."""
        return mending.mend(self)

    def take_appends(self) -> None:
        """The shortage is over, and all that it left is mended."""
        self.damage.error = self.error = None
        self.damage.needed_bytes = 0
        logger.warning("%s: the log takes appends again", self.directory)

    def set_end(self, offset: int) -> None:
        """The log ends at `offset`: used by recovery and truncation only."""
        self._next_offset = self._written_offset = self.log_end_offset = offset
        self.producers.written()
        if self.high_watermark > offset:
            self.high_watermark = offset

    # -- durability ---------------------------------------------------------------------------

    def flush(self) -> Pending[None]:
        """Make everything written durable and move the recovery point; KAFKA_STORAGE_ERROR."""
        if self._tail:
            self.write_tail()
        return self._flush_to(self._written_offset)

    def _flush_to(self, offset: int) -> Pending[None]:
        """Sync the segments that hold offsets from the recovery point up to `offset`."""
        result: Pending[None] = Pending()
        if offset <= self.recovery_point and not self.unsynced_segments:
            result.complete(None)
            return result
        request = self.sync_request(offset)
        truncations = self._truncations

        def synced(done: Pending[None]) -> None:
            error = done.error()
            if error is not None:
                self.fail(error, lost=True)
                result.fail(self.error or error)
                return
            if truncations == self._truncations:
                self.recovery_point = max(self.recovery_point, min(offset, self._written_offset))
            self.last_flush_ms = self.clock.wall_ms()
            result.complete(None)

        self.flusher.request(request).add_done_callback(synced)
        return result

    def sync_request(self, offset: int) -> SyncRequest:
        """What has to be synced so that everything below `offset` is durable, epochs included."""
        request = SyncRequest()
        if self.recovery_point < offset:
            for segment in self.segments.starting_at(self.recovery_point):
                if segment.base_offset < offset:
                    segment.add_to_sync(request)
        for segment in self.unsynced_segments:
            if not segment.is_deleted:
                segment.add_to_sync(request)
        self.unsynced_segments = []
        # Epochs that begin at the log's end are given up by the next start anyhow.
        has_epochs = bool(self.leader_epochs.entries) and self.leader_epochs.entries[0][1] < offset
        if self._epochs_unsynced and has_epochs:
            self._epochs_unsynced = False
            request.paths.append(f"{self.directory}/{EPOCHS_FILE}")
            self.has_new_files = True
        if self.has_new_files:
            self.has_new_files = False
            request.directories.append(self.directory)
        return request

    def flush_up_to(self, offset: int) -> Pending[None]:
        """Make the segments below `offset` durable (after a roll)."""
        return self._flush_to(min(offset, self._written_offset))

    def sync_now(self) -> None:
        """Make everything written durable before going on: after a truncation, at a stop.

        Blocks. Raises OSError, NotBegunError where some of it was not tried.
        """
        unsynced = self.unsynced_segments
        try:
            sync_files(self.files, self.sync_request(self._written_offset + 1))
        except NotBegunError:
            self.unsynced_segments = unsynced
            self.has_new_files = self._epochs_unsynced = True
            raise
        self.recovery_point = self._written_offset
        self.damage.is_unsynced = False

    def doubt_durability(self, offset: int) -> None:
        """After a kill nobody knows which files from `offset` on were synced: the next flush is."""
        self.has_new_files = self._epochs_unsynced = True
        self.unsynced_segments = [s for s in self.segments.starting_at(offset) if s.is_sealed]

    @property
    def truncations(self) -> int:
        """How often records were dropped from the end."""
        return self._truncations

    def truncated(self) -> None:
        """Records were dropped: durably, so that they do not come back among newer ones."""
        self._truncations += 1
        try:
            self._end_truncation()
        except OSError as error:
            self.damage.begun = self._end_truncation
            self.fail(error)

    def _end_truncation(self) -> None:
        """Raises OSError where something was short, so that it may be done again."""
        if self.on_truncated is not None:
            self.on_truncated(self)
        self.has_new_files = True
        try:
            self.sync_now()
        except NotBegunError:
            raise
        except OSError as error:
            self.fail(error, lost=True)

    def save_snapshot(self) -> list[str]:
        """A producer snapshot at the log's end, unless there is one or the log is empty.

        Returns the path of the file that it wrote. Not durable: recovery can do without.
        """
        if self._written_offset <= max(self.snapshots.latest, 0):
            return []
        return [self.snapshots.write(self._written_offset, self.producers.entries.values())]

    # -- the epoch file -----------------------------------------------------------------------

    def _save_epochs(self, data: bytes) -> None:
        self._epochs_unsynced = True
        try:
            write_atomically(self.files, f"{self.directory}/{EPOCHS_FILE}", data, sync=False)
            self._epochs_unsaved = False
        except OSError as error:
            self._epochs_unsaved = True
            self.fail(error)

    def save_missing_epochs(self) -> None:
        """Write the epochs that a shortage kept from the file. Raises OSError."""
        if self._epochs_unsaved:
            self._epochs_unsynced = True
            data = self.leader_epochs.encode()
            write_atomically(self.files, f"{self.directory}/{EPOCHS_FILE}", data, sync=False)
            self._epochs_unsaved = False

    def save_epochs(self) -> None:
        """Write the epoch file where there is none yet."""
        if not self.files.exists(f"{self.directory}/{EPOCHS_FILE}"):
            self._save_epochs(self.leader_epochs.encode())
