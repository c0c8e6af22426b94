"""The log of one partition: what is appended to it, what may be read, where it begins and ends.

It is made of parts: `local` has the files, an appender and a reader work on them, `producers` has
sequences and transactions, `leader_epochs` where each epoch begins, `shortage` what is missing
while a log refuses appends. The log holds the offsets that others see. There are three ends:
`next_offset` is what the next batch gets, `local.written_offset` is what the file holds,
`log_end_offset` is what others may see. The last two differ only while a flush that
`flush.messages` asks for is under way. A log is touched by the loop's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.kept_errors import anew, kept
from kwire.log.files import NotBegunError, passes
from kwire.log.flushing import Flusher, SyncRequest, sync_files
from kwire.log.partition import retention
from kwire.log.partition.append_checks import batches_without_records
from kwire.log.partition.appender import Appender
from kwire.log.partition.config import LogConfig
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.log_state import LogState
from kwire.log.partition.producers import ONGOING, ProducerEntry, Producers, VerificationGuard
from kwire.log.partition.reader import LogReader
from kwire.log.partition.replay import load_producers
from kwire.log.partition.shortage import Shortage
from kwire.log.partition.write_buffer import WriteBuffer
from kwire.log.scheduling import Scheduler
from kwire.log.segment.open_file_limit import OpenSegments
from kwire.log.segment.segment import Segment
from kwire.log.types import TimestampOffset
from kwire.pending import Pending, settle_all
from kwire.protocol.errors import ErrorCode, KafkaError

DONE: Pending[None] = Pending.completed(None)

logger = logging.getLogger(__name__)


class PartitionLog(LogState):
    """One partition's log, opened by `recovery.opening.open_log`.

    `log_start_offset` is where the partition begins for its readers, `local_log_start_offset` where
    what this disk has of it does. `on_error(log, error, lost)` hears of a failed write or sync: the
    log refuses appends from then on (KAFKA_STORAGE_ERROR) and goes on serving what it has. After a
    failed sync (`lost`) nothing in its log directory may be trusted to become durable. While
    `is_short` the log has only run short of something: `resume_appends` lets it take them again
    when that is over.
    """

    __slots__ = (
        "_appender",
        "_buffer",
        "_led_epoch",
        "_promised_end",
        "_reader",
        "append_as_follower",
        "append_as_leader",
        "append_made",
        "append_usual",
        "clock",
        "config",
        "leader_epochs",
        "local",
        "on_error",
        "on_truncated",
        "producers",
        "read",
        "segments",
        "shortage",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        local: LocalLog,
        producers: Producers,
        *,
        log_start_offset: int,
        promised_end: int = 0,
        on_error: Callable[[PartitionLog, Exception, bool], None] | None = None,
    ) -> None:
        name = producers.name  # one text for all parts
        super().__init__(topic, partition, topic_id, name, log_start_offset, local.written_offset)
        self.local = local
        self.segments = local.segments
        self.leader_epochs = local.epoch_file.epochs
        self.producers = producers
        self.clock = local.clock
        self.config = local.config
        self.shortage = Shortage(local, self.fail, self._take_appends)
        self.on_error = on_error
        self.on_truncated: Callable[[PartitionLog], None] | None = None
        # The log ended there once, durably; what is missing is lost.
        self._promised_end = promised_end
        self._led_epoch = -1
        self._buffer = WriteBuffer(self.write_failed, self._written, local.scheduler, local.files)
        self._appender = Appender(self, self.name, local, producers, self._buffer)
        self._reader = LogReader(self, self.name, local)
        # The parts' own methods: for every batch a call that only calls another would show.
        self.append_as_leader = self._appender.append_as_leader
        self.append_usual = self._appender.append_usual
        self.append_made = self._appender.append_made
        self.append_as_follower = self._appender.append_as_follower
        self.read = self._reader.read
        local.sync_failed = self._sync_failed
        local.on_moved = self._offsets_moved
        local.epoch_file.on_error = self.fail

    def reconfigure(self, config: LogConfig) -> None:
        """Take over changed topic configs; segments keep their size until they are rolled."""
        self.config = config
        self.local.reconfigure(config)
        self._appender.reconfigure(config)

    def share(self, scheduler: Scheduler, flusher: Flusher, open_segments: OpenSegments) -> None:
        """Share these with other logs from now on: a log is opened alone."""
        self.local.share(scheduler, flusher, open_segments)
        self._buffer.scheduler = scheduler

    # -- offsets ------------------------------------------------------------------------------

    @property
    def directory(self) -> str:
        return self.local.directory

    @property
    def next_offset(self) -> int:
        """The offset of the next batch, behind those that still wait to be written."""
        return self._appender.next_offset

    @property
    def recovery_point(self) -> int:
        """Below it everything is durable."""
        return self.local.recovery_point

    @property
    def truncations(self) -> int:
        """How often records were dropped from the end."""
        return self.local.truncations

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments' logs."""
        return self.segments.size_bytes

    @property
    def is_short(self) -> bool:
        """Whether appends are refused only until a shortage is over."""
        return self.shortage.error is not None

    @property
    def last_stable_offset(self) -> int:
        """Below it everything is decided and below the high watermark."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept between the log's start and end; returns it."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        if self.is_noted:
            self._offsets_moved()
        if self.producers.first_unstable_offset is not None:
            self.producers.high_watermark_updated(offset)
        return offset

    def _set_end(self, offset: int) -> None:
        """The log ends at `offset`, by a truncation."""
        if self.on_moving is not None:
            self.on_moving()
        self._appender.next_offset = self.local.written_offset = self.log_end_offset = offset
        self.producers.written()
        if self.high_watermark > offset:
            self.high_watermark = offset
        self._offsets_moved()

    # -- producers and epochs -----------------------------------------------------------------

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
        """Become leader: the epoch begins at the log's end, before anything is appended.

        Where the end was lost to damage, offsets that consumers may have seen are not given anew.
        """
        self._led_epoch = leader_epoch
        if self.next_offset < self._promised_end:
            self._leave_gap(leader_epoch)
        self.leader_epochs.assign(leader_epoch, self.next_offset, is_saved=False)

    def _leave_gap(self, leader_epoch: int) -> None:
        """Batches without records in place of those that are lost."""
        end, self._promised_end = self._promised_end, 0
        if self.error is not None or self.is_closed:
            return
        first = self.next_offset
        lost = f"offsets {first} to {end - 1} are lost; going on at offset {end}"
        logger.error("%s: %s", self.directory, lost)
        if not any(segment.size_bytes for segment in self.segments):
            self._truncate_fully(end)
            return
        epoch = self.leader_epochs.latest if self.leader_epochs.entries else leader_epoch
        for batch in batches_without_records(first, end, epoch):
            self.append_as_follower(batch)
        try:
            self.settle()  # the high watermark of a leader alone begins where its log ends
        except (KafkaError, OSError) as error:
            logger.error("%s: %s", self.directory, error)

    def active_producers(self) -> list[ProducerEntry]:
        """The producers known to the log (DescribeProducers), by id."""
        return sorted(self.producers.entries.values(), key=lambda entry: entry.producer_id)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or behind `timestamp` (ms), None when there is none."""
        return self._reader.offset_for_timestamp(timestamp)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp."""
        return self._reader.max_timestamp_offset()

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # -- what was appended becomes visible, or fails --------------------------------------------

    def write_tail(self) -> None:
        """Write what waits for the end of the loop's turn now."""
        self._buffer.write(self.segments.active)
        if self.error is not None:
            raise anew(self.error)

    def settle(self) -> None:
        """Finish every append now, with the flush that it waits for: before a change of roles.

        May block for a sync. Raises KafkaError and OSError.
        """
        if self._buffer:
            self.write_tail()
        if self.log_end_offset < self.local.written_offset:
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
            self.log_end_offset = self.local.written_offset

    def _written(self, waiting: list[Pending[None]]) -> None:
        """The buffer is in the file: make it visible, or flush first where that was asked for."""
        local = self.local
        target = local.written_offset = self._appender.next_offset
        self.producers.written()
        if target - local.recovery_point < self.config.flush_messages:
            self.log_end_offset = target
            for pending in waiting:
                pending.complete(None)
            return
        truncations = local.truncations

        def flushed(done: Pending[None]) -> None:
            error = done.error()
            if error is None and truncations == local.truncations:
                self.log_end_offset = max(self.log_end_offset, target)
            settle_all(waiting, None if error is None else self.error or error)

        local.flush_to(target).add_done_callback(flushed)

    def write_failed(
        self, error: OSError, waiting: list[Pending[None]], size_bytes: int = 0
    ) -> None:
        """Cut back to the last whole batch and refuse appends; what is there stays readable."""
        self.fail(error)
        self.cut_back(size_bytes)
        assert self.error is not None
        settle_all(waiting, self.error)

    def cut_back(self, needed_bytes: int) -> None:
        """Take back the batches that are not written: in memory at once, then in the files."""
        assert self.error is not None
        self._appender.take_back(self.error, self._led_epoch)
        self.shortage.cut_back(needed_bytes)

    def check_writable(self) -> None:
        """Raise the KafkaError that says why not."""
        if self.error is not None:
            if self.on_refused is not None and self.is_short:
                self.on_refused()
            raise anew(self.error)
        if self.is_closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {self.name} is closed")

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
            self.shortage.error = kept(error)
            then = "no appends until that is over"
        else:
            self.shortage.error = None
            then = "no more appends"
        logger.error("%s: %s; the log takes %s", self.directory, error, then)
        if self.on_moving is not None:
            self.on_moving()
        said = f"Error while writing to the log of {self.name}: {error}"
        self.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, said)
        if self.on_error is not None:
            self.on_error(self, error, lost)

    def _sync_failed(self, error: Exception) -> Exception:
        self.fail(error, lost=True)
        return self.error or error

    def resume_appends(self) -> Pending[None]:
        """Take appends again if the shortage is over; see `Shortage.retry`."""
        return DONE if self.is_closed else self.shortage.retry()

    def _take_appends(self, durable_end: int | None) -> None:
        """The shortage is over, and what it left undone is done."""
        if self.is_closed:
            return
        if durable_end is not None:
            self.local.move_recovery_point(max(self.recovery_point, durable_end))
        self.shortage.clear()
        self.error = None
        logger.warning("%s: the log takes appends again", self.directory)

    # -- durability ---------------------------------------------------------------------------

    def flush(self) -> Pending[None]:
        """Make everything written durable and move the recovery point; KAFKA_STORAGE_ERROR."""
        if self._buffer:
            self.write_tail()
        return self.local.flush_to(self.local.written_offset)

    def sync_now(self) -> None:
        """Make everything written durable before going on: after a truncation, at a stop.

        Blocks. Raises OSError, NotBegunError where some of it was not tried.
        """
        self.local.sync_now()
        self.shortage.is_unsynced = False

    # -- segments -----------------------------------------------------------------------------

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new segment at the log's end (or at `base_offset` behind it).

        Raises OSError; as after an append that failed, the log then takes no more for now.
        """
        try:
            return self.roll_before(self.next_offset if base_offset is None else base_offset)
        except OSError as error:
            self.write_failed(error, [])
            raise

    def roll_before(self, base_offset: int) -> Segment:
        """As `roll`, for an append: what was sealed is flushed off the loop."""
        self.write_tail()
        base = max(base_offset, self.next_offset)
        local, active = self.local, self.segments.active
        if not active.size_bytes and active.base_offset == base:
            return active
        local.seal_active()
        local.save_snapshot(self.producers.entries.values())
        segment = local.begin_segment(base)
        if not active.size_bytes:
            local.drop(active)  # nothing was ever in it: offsets too far from its base
        local.flush_up_to(base)
        return segment

    def delete_old_segments(self, wall_ms: int, segments_max: int = 1 << 31) -> int:
        """Apply retention to the oldest segments; returns how many were given up."""
        count = 0
        for rule in retention.rules(self.config, self.segments, self.log_start_offset, wall_ms):
            gone = retention.oldest(
                self.segments,
                rule,
                next_offset=self.next_offset,
                high_watermark=self.high_watermark,
                segments_max=segments_max - count,
            )
            count += self._give_up(gone, rule.reason)
        return count

    def _give_up(self, gone: list[Segment], reason: str) -> int:
        if len(gone) == len(self.segments) and self.error is not None:
            gone.pop()  # there is no room to begin another one
        if not gone:
            return 0
        if len(gone) == len(self.segments):
            self.roll()
        bases = gone[0].base_offset, gone[-1].base_offset
        given_up = "%s: giving up %d segments, %d to %d, by %s"
        logger.info(given_up, self.directory, len(gone), *bases, reason)
        start = self.segments.next_base(len(gone) - 1)
        assert start is not None, "there is one behind those that go"
        self.move_start(start)  # first: those that cannot be renamed now go another time
        self.local.retire(gone)
        return len(gone)

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
        self._set_start(offset)
        self.leader_epochs.truncate_from_start(offset)
        self.producers.log_start_moved(offset)
        local = self.local
        local.move_recovery_point(max(local.recovery_point, min(offset, self.log_end_offset)))
        if self.high_watermark < offset:
            self.update_high_watermark(offset)

    # -- truncation ---------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on (a follower that diverged from its leader).

        Raises KafkaError(KAFKA_STORAGE_ERROR); after a shortage `resume_appends` finishes it.
        """
        self.write_tail()
        self._truncate(lambda: self._truncate_to(offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin anew at `offset`."""
        self._buffer.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "truncated"))
        self._truncate(lambda: self._truncate_fully(offset))

    def _truncate(self, truncation: Callable[[], None]) -> None:
        try:
            truncation()
        except OSError as error:
            self.shortage.truncation = truncation
            self.fail(error)
            assert self.error is not None
            raise anew(self.error) from None

    def _truncate_to(self, offset: int) -> None:
        """Producers and epochs are as they were there."""
        local = self.local
        if offset >= self.next_offset:  # what still waits for its flush is dropped as well
            self.leader_epochs.truncate_from_end(offset)
            return
        if self.segments.first.base_offset > offset:
            self._truncate_fully(offset)
            return
        local.truncate_to(offset)
        self.leader_epochs.truncate_from_end(offset)
        local.move_recovery_point(min(local.recovery_point, offset))
        self._promised_end = 0
        local.snapshots.remove_above(offset)
        self._set_start(min(self.log_start_offset, offset))
        start, mark = self.log_start_offset, self.high_watermark
        load_producers(local, self.producers, start=start, end_offset=offset, high_watermark=mark)
        self._set_end(offset)
        self.update_high_watermark(min(self.high_watermark, offset))
        self._truncated()

    def _truncate_fully(self, offset: int) -> None:
        local = self.local
        local.drop_all()
        self.leader_epochs.clear()
        self.producers.clear()
        self._set_start(offset)
        local.move_recovery_point(offset)
        self._promised_end = 0
        self.high_watermark = offset
        segment = local.add_empty(offset)  # if its files cannot be made all of this is done again
        self._set_end(offset)
        local.create(segment)
        self._truncated()

    def _truncated(self) -> None:
        """Records were dropped: durably, so that they do not come back among newer ones."""
        self.local.truncations += 1
        try:
            self._end_truncation()
        except OSError as error:
            self.shortage.truncation = self._end_truncation
            self.fail(error)

    def _end_truncation(self) -> None:
        """Raises OSError where something was short, so that it may be done again."""
        if self.on_truncated is not None:
            self.on_truncated(self)
        self.local.has_new_files = True
        try:
            self.sync_now()
        except NotBegunError:
            raise
        except OSError as error:
            self.fail(error, lost=True)

    # -- copies, and the end --------------------------------------------------------------------

    def take_over(self, original: PartitionLog) -> None:
        """Know what another log of this partition knows: this one has all its records."""
        self.leader_epochs.replace(list(original.leader_epochs.entries))
        self.producers.take_over(original.producers)
        self.update_high_watermark(original.high_watermark)
        self.local.has_new_files = True

    def close(self, *, sync: bool = False) -> None:
        """Write the tail, trim the indexes, snapshot the producers, close the files.

        With `sync` all of it is durable afterwards: a clean stop. Blocks for the syncs.
        """
        if self.is_closed:
            return
        request = self.begin_close()
        if sync:
            try:
                sync_files(self.local.files, request)
            except OSError as error:
                self.fail(error, lost=True)
        self.end_close(is_durable=sync)

    def begin_close(self, *, goes_on: bool = False) -> SyncRequest:
        """The first half of a close: write everything; returns what has to be synced then. For who
        `goes_on` that is nothing, and the next flush syncs it."""
        request, local = SyncRequest(), self.local
        try:
            if self.error is None:
                self._buffer.write(self.segments.active)
            if self.error is None:
                request.paths += self.segments.active.finish_indexes()
                request.paths += local.save_snapshot(self.producers.entries.values())
                local.epoch_file.save_first()
                local.has_new_files |= bool(request.paths)
                if not goes_on:
                    request.add(local.sync_request(local.written_offset))
        except OSError as error:
            self.fail(error)
        return request

    def end_close(self, *, is_durable: bool) -> None:
        """The second half: close the files, after the syncs if there were any."""
        if is_durable and self.error is None:
            self.local.move_recovery_point(self.local.written_offset)
        self.is_closed = True
        self.local.close()

    def abandon(self) -> None:
        """Close the files and nothing else: the log is deleted, or the node is killed (tests)."""
        self.is_closed = True
        self._buffer.discard(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is closed"))
        self.local.give_up()

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.log_start_offset}..{self.log_end_offset})"
