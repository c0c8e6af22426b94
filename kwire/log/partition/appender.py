"""Appending to a log: as a leader, which stamps batches, and as a follower, which keeps them.

Batches get their places at once, and are written at the end of the loop's turn (`WriteBuffer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

from kwire.kept_errors import anew
from kwire.log.files import Buffer
from kwire.log.partition.append_checks import LeaderChecks, PlacedBatch, place_as_sent
from kwire.log.partition.batch_rules import Marker, plain_header, stamp, stamp_plain
from kwire.log.partition.config import LogConfig
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.producers import (
    BatchMetadata,
    ProducerEntry,
    Producers,
    VerificationGuard,
)
from kwire.log.partition.rolling import must_roll
from kwire.log.partition.write_buffer import WriteBuffer
from kwire.log.segment.segment import Segment
from kwire.log.segment.walking import OFFSET_DELTA_MAX
from kwire.log.types import AppendInfo, Origin
from kwire.pending import Pending
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import BatchHeader
from kwire.protocol.records.build import MadeBatch
from kwire.protocol.records.control import TransactionMarker
from kwire.protocol.records.validation import CheckedBatch

BASE_OFFSET = Struct(">q")
DONE: Pending[None] = Pending.completed(None)


class Appendable(Protocol):
    """What an appender asks of its log, and what it reports to it."""

    log_start_offset: int
    log_end_offset: int
    error: KafkaError | None
    is_closed: bool

    def check_writable(self) -> None: ...
    def roll_before(self, base_offset: int) -> Segment: ...
    def write_failed(
        self, error: OSError, waiting: list[Pending[None]], size_bytes: int
    ) -> None: ...
    def cut_back(self, needed_bytes: int) -> None: ...


class Appender:
    """Gives batches their places in a log. `next_offset` is what the next one gets."""

    __slots__ = (
        "_buffer",
        "_checks",
        "_clock",
        "_config",
        "_epochs",
        "_local",
        "_log",
        "_name",
        "_producers",
        "_segments",
        "next_offset",
    )

    def __init__(
        self, log: Appendable, name: str, local: LocalLog, producers: Producers, buffer: WriteBuffer
    ) -> None:
        self._log = log
        self._name = name
        self._local = local
        self._segments = local.segments
        self._epochs = local.epoch_file.epochs
        self._producers = producers
        self._buffer = buffer
        self._clock = local.clock
        self.next_offset = local.written_offset
        self.reconfigure(local.config)

    def reconfigure(self, config: LogConfig) -> None:
        """Take over changed topic configs."""
        self._config = config
        self._checks = LeaderChecks(config, self._name, self._producers)

    def take_back(self, error: Exception, led_epoch: int) -> None:
        """Forget what is not written: whoever waits for it gets `error`. In memory only."""
        end = self._local.written_offset
        self._buffer.discard(error)
        self.next_offset = end
        self._producers.take_back(end)
        self._local.epoch_file.take_back(end, led_epoch)

    def append_as_leader(
        self,
        batches: Buffer | Sequence[Buffer] | TransactionMarker,
        *,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        wall_ms: int | None = None,
        may_wait: bool = False,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Check, stamp and append; offsets are given at once, `written` completes when they hold.

        A writable buffer is stamped in place, a small batch is copied: the caller may reuse the
        memory once `written` is done. The marker of a transaction is made here and needs no check
        but whether it may end so. Raises KafkaError with Kafka's codes: CORRUPT_MESSAGE,
        INVALID_RECORD, INVALID_TIMESTAMP (InvalidRecordsError names the records),
        MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR. With `may_wait` also CheckLaterError
        (`deferred_checks`), whose outcome comes back as `checked`.
        """
        log = self._log
        if log.error is not None or log.is_closed:
            log.check_writable()
        now_ms = self._clock.wall_ms() if wall_ms is None else wall_ms
        if isinstance(batches, bytearray):
            batches = memoryview(batches)
        checks = self._checks
        if (
            origin is not Origin.RAFT
            and isinstance(batches, memoryview)
            and len(batches) <= checks.plain_bytes_max
        ):
            plain = stamp_plain(batches, checks.rules, now_ms, self.next_offset, leader_epoch)
            if plain is not None:
                if plain.producer_id >= 0:
                    known = self._producers.check_data(plain, plain.base_offset, origin, guard)
                    if known is not None:
                        return self._duplicate(known)
                return self._append_plain(plain, batches)
        placed = checks.place(
            batches,
            self.next_offset,
            leader_epoch,
            origin,
            guard,
            transaction_version,
            now_ms,
            may_wait,
            checked,
        )
        if isinstance(placed, BatchMetadata):
            return self._duplicate(placed)
        return self._append(placed, now_ms if self._config.is_log_append_time else -1)

    def append_usual(
        self, batch: memoryview, leader_epoch: int, wall_ms: int
    ) -> tuple[BatchHeader, Pending[None]] | None:
        """`append_as_leader` of a client's usual batch: its header with its offsets, and `written`.

        None, and nothing is changed, for every batch that is refused, repeated, or needs a file
        before the end of the turn.
        """
        log, checks, size_bytes = self._log, self._checks, len(batch)
        if (
            log.error is not None
            or log.is_closed
            or size_bytes > checks.plain_bytes_max
            or not self._buffer.waits_with(size_bytes)
            or leader_epoch > self._epochs.latest_saved
        ):
            return None
        header = plain_header(batch, checks.rules, wall_ms, self.next_offset, leader_epoch)
        if header is None or header.is_transactional:
            return None
        producer: ProducerEntry | None = None
        if header.producer_id >= 0 and (producer := self._producers.continues(header)) is None:
            return None
        segment, config, local = self._segments.active, self._config, self._local
        last_offset, max_timestamp = (
            header.base_offset + header.last_offset_delta,
            header.max_timestamp,
        )
        try:
            if segment.assigned_bytes + size_bytes > config.segment_bytes or must_roll(
                segment, last_offset, max_timestamp, config, local.jitter_share, self._clock
            ):
                return None
            stamp(batch, header)
            self._give_place(segment, header, max_timestamp)
            if producer is not None:
                self._producers.take_next(producer, header)
            self._buffer.add(batch, False)
            return header, self._buffer.submit(segment)
        except OSError as error:
            log.write_failed(error, [], size_bytes)
        except KafkaError:
            pass  # a damaged segment, of which the general way says the same
        BASE_OFFSET.pack_into(batch, 0, 0)  # as its client sent it
        return None

    def append_made(self, made: MadeBatch, wall_ms: int) -> bool:
        """`append_as_leader` of a batch that this process has made for the end of the log, and its
        write: nothing of it is checked but what the log asks of any batch.

        False, and nothing is changed, where `append_as_leader` has more to decide. Raises
        KafkaError(KAFKA_STORAGE_ERROR): it is not written.
        """
        log, header = self._log, made.header
        if (
            log.error is not None
            or log.is_closed
            or self._buffer
            or self._buffer.is_slow
            or self._segments.active.must_wait
            or header.base_offset != self.next_offset
            or header.partition_leader_epoch > self._epochs.latest_saved
            or not self._checks.takes_made(header, wall_ms)
        ):
            return False
        segment = self._segments.active
        try:
            if self._is_due(segment, header, header.max_timestamp):
                return False
            self._assign(segment, header, header.max_timestamp, None)
        except OSError as error:
            log.write_failed(error, [], header.size_bytes)
        except KafkaError:
            return False  # a damaged segment, of which the general way says the same
        else:
            self._buffer.write_alone(segment, made.data)
        if log.error is not None:
            raise anew(log.error)
        return True

    def append_as_follower(self, batches: Buffer | Sequence[Buffer]) -> AppendInfo:
        """Append what a leader sent as it is: offsets, epochs and timestamps are kept.

        Raises KafkaError(CORRUPT_MESSAGE) for batches that do not follow on the log or whose
        checksum does not hold (nothing is appended then), KAFKA_STORAGE_ERROR.
        """
        self._log.check_writable()
        latest_epoch = self._epochs.latest
        return self._append(place_as_sent(batches, self.next_offset, latest_epoch, self._name), -1)

    def _duplicate(self, known: BatchMetadata) -> AppendInfo:
        """What the first of them got; it is written when that is, with the flush it waits for."""
        if known.last_offset < self._log.log_end_offset:
            written = DONE
        elif known.last_offset < self._local.written_offset:
            written = self._local.flush_to(self._local.written_offset)
        else:
            written = self._buffer.pending()
        return AppendInfo(
            known.first_offset,
            known.last_offset,
            known.timestamp,  # of either type, as Kafka answers
            self._log.log_start_offset,
            written,
            duplicate=True,
        )

    def _append_plain(self, header: BatchHeader, data: Buffer) -> AppendInfo:
        """`_append` of one batch with CreateTime."""
        log = self._log
        try:
            self._place(header, data, header.max_timestamp, None, False)
            if log.error is not None:
                log.cut_back(header.size_bytes)
                raise anew(log.error)
            written = self._buffer.submit(self._segments.active)
        except OSError as error:
            log.write_failed(error, [], header.size_bytes)
        if log.error is not None:
            raise anew(log.error)
        return AppendInfo(
            header.base_offset,
            header.base_offset + header.last_offset_delta,
            -1,
            log.log_start_offset,
            written,
            False,
            header.last_offset_delta + 1,
            header.size_bytes,
        )

    def _append(self, placed: list[PlacedBatch], append_time_ms: int) -> AppendInfo:
        """Give checked batches their places and their data to the buffer."""
        log, size_bytes = self._log, 0
        try:
            for batch in placed:
                size_bytes += batch.header.size_bytes
                self._place(*batch)
                if log.error is not None:  # an epoch that could not be saved
                    log.cut_back(size_bytes)
                    raise anew(log.error)
            written = self._buffer.submit(self._segments.active)
        except OSError as error:
            log.write_failed(error, [], size_bytes)
        if log.error is not None:
            raise anew(log.error)
        first, last = placed[0].header.base_offset, placed[-1].header.last_offset
        return AppendInfo(
            first,
            last,
            append_time_ms,
            log.log_start_offset,
            written,
            record_count=last - first + 1,
            size_bytes=size_bytes,
        )

    def _place(
        self,
        header: BatchHeader,
        data: Buffer,
        max_timestamp: int,
        marker: Marker | None,
        is_owned: bool,
    ) -> None:
        segment = self._segments.active
        if self._is_due(segment, header, max_timestamp):
            last_offset = header.base_offset + header.last_offset_delta
            if segment.assigned_bytes or last_offset - segment.base_offset > OFFSET_DELTA_MAX:
                segment = self._log.roll_before(header.base_offset)
        self._take(segment, header, data, max_timestamp, marker, is_owned)

    def _is_due(self, segment: Segment, header: BatchHeader, max_timestamp: int) -> bool:
        """Whether a batch should not go into this segment any more."""
        config = self._config
        return segment.assigned_bytes + header.size_bytes > config.segment_bytes or must_roll(
            segment,
            header.base_offset + header.last_offset_delta,
            max_timestamp,
            config,
            self._local.jitter_share,
            self._clock,
        )

    def _take(
        self,
        segment: Segment,
        header: BatchHeader,
        data: Buffer,
        max_timestamp: int,
        marker: Marker | None,
        is_owned: bool,
    ) -> None:
        self._assign(segment, header, max_timestamp, marker)
        self._buffer.add(data, is_owned)

    def _assign(
        self, segment: Segment, header: BatchHeader, max_timestamp: int, marker: Marker | None
    ) -> None:
        self._give_place(segment, header, max_timestamp)
        if header.producer_id >= 0:
            self._producers.remember(header.producer_id)
            aborted = self._producers.replay_batch(header, marker)
            if aborted is not None:
                segment.add_aborted_transaction(aborted)

    def _give_place(self, segment: Segment, header: BatchHeader, max_timestamp: int) -> None:
        base_offset = header.base_offset
        segment.assign(header, base_offset, max_timestamp)
        self.next_offset = base_offset + header.last_offset_delta + 1
        if header.partition_leader_epoch > self._epochs.latest_saved:
            self._epochs.assign(header.partition_leader_epoch, base_offset)
