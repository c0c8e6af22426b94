"""Appending to a partition's log: as a leader, which stamps, and as a follower, which keeps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from kwire.kept_errors import anew
from kwire.log.files import Buffer
from kwire.log.partition import rolling as maintenance
from kwire.log.partition.base import LogBase
from kwire.log.partition.batch_rules import (
    Marker,
    check_follower_batches,
    check_leader_batches,
    check_made_size,
    read_marker,
    split,
    stamp_plain,
)
from kwire.log.partition.deferred_checks import check_or_defer
from kwire.log.partition.producers import ONGOING, BatchMetadata, VerificationGuard
from kwire.log.recovery import cutting as mending
from kwire.log.segment.segment import OFFSET_DELTA_MAX
from kwire.log.types import AppendInfo, Origin
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader, build_batch
from kwire.protocol.records.validation import (
    CheckedBatch,
    ValidatedBatch,
    checking_steps,
    takes_long,
    validate_for_append,
)

DONE: Pending[None] = Pending.completed(None)

logger = logging.getLogger(__name__)

GAP_MAX = 1 << 30  # offsets that a batch without records stands for


class _Placed(NamedTuple):
    """A checked batch, alone in `data`."""

    header: BatchHeader
    data: Buffer
    max_timestamp: int
    marker: Marker | None
    is_owned: bool


class AppendingLog(LogBase):
    """A log that takes batches."""

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
        may_wait: bool = False,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Check, stamp and append; offsets are given at once, `written` tells when they hold.

        A writable buffer is stamped in place, a small batch is copied: the caller may reuse the
        memory once `written` is done. Raises KafkaError with Kafka's codes: CORRUPT_MESSAGE,
        INVALID_RECORD, INVALID_TIMESTAMP (InvalidRecordsError names the records),
        MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR. With `may_wait` also CheckLaterError
        (`deferred_checks`), whose outcome comes back as `checked`.
        """
        if self.error is not None or self.is_closed:
            self._check_writable()
        now_ms = self.clock.wall_ms() if wall_ms is None else wall_ms
        if isinstance(batches, bytearray):
            batches = memoryview(batches)
        if (
            origin is not Origin.RAFT
            and isinstance(batches, memoryview)
            and len(batches) <= self._plain_bytes_max
        ):
            plain = stamp_plain(batches, self.rules, now_ms, self._next_offset, leader_epoch)
            if plain is not None:
                if plain.producer_id >= 0:
                    known = self.producers.check_data(plain, plain.base_offset, origin, guard)
                    if known is not None:
                        return self._duplicate(known)
                return self._append_plain(plain, batches)
        base_offset = self._next_offset
        placed: list[_Placed] = []
        found: list[tuple[BatchHeader, Buffer]]
        if checked is not None and checked.rules is self.rules:
            found = [(checked.header, checked.buffer)]
        else:
            checked = None
            found = split(batches)
            check_leader_batches(found, self.config, origin, self.name)
        for header, view in found:
            valid = self._validated(
                header, view, origin, now_ms, base_offset, leader_epoch, checked, may_wait
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

    def _validated(
        self,
        header: BatchHeader,
        view: Buffer,
        origin: Origin,
        now_ms: int,
        base_offset: int,
        leader_epoch: int,
        checked: CheckedBatch | None,
        may_wait: bool,
    ) -> ValidatedBatch:
        """The batch in its place, if it fulfils the topic's rules."""
        client, rules = origin == Origin.CLIENT, self.rules
        if checked is None and may_wait and takes_long(header, rules):
            steps = checking_steps(view, 0, header, rules, client=client, wall_ms=now_ms)
            checked = check_or_defer(steps, header.size_bytes)
        if checked is not None:
            valid = checked.stamped(base_offset, leader_epoch)
        else:
            valid = validate_for_append(
                view,
                0,
                header,
                rules,
                client=client,
                wall_ms=now_ms,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
            )
        if rules.codec is not None:
            check_made_size(valid.header, self.config, origin, self.name)
        return valid

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
        """Become leader: the epoch begins at the log's end, before anything is appended.

        Where the end was lost to damage, offsets that consumers may have seen are not given anew.
        """
        self._led_epoch = leader_epoch
        if self._next_offset < self.promised_end:
            self._leave_gap(leader_epoch)
        self.leader_epochs.assign(leader_epoch, self._next_offset, is_saved=False)

    def _leave_gap(self, leader_epoch: int) -> None:
        """Batches without records in place of those that are lost, as compaction leaves them."""
        end, self.promised_end = self.promised_end, 0
        if self.error is not None or self.is_closed:
            return
        logger.error(
            "%s: offsets %d to %d are lost; going on at offset %d",
            self.directory,
            self._next_offset,
            end - 1,
            end,
        )
        if not any(segment.size_bytes for segment in self.segments):
            maintenance.truncate_fully(self, end)
            return
        epoch = self.leader_epochs.latest if self.leader_epochs.entries else leader_epoch
        while self._next_offset < end:
            last_offset = min(end - 1, self._next_offset + GAP_MAX)
            batch = build_batch(
                [], base_offset=self._next_offset, last_offset=last_offset, leader_epoch=epoch
            )
            self.append_as_follower(batch)
        try:
            self.settle()  # the high watermark of a leader alone begins where its log ends
        except (KafkaError, OSError) as error:
            logger.error("%s: %s", self.directory, error)

    def _check_writable(self) -> None:
        if self.error is not None:
            if self.on_refused is not None and self.is_short:
                self.on_refused()
            raise anew(self.error)
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
        """What the first of them got; it is written when that is, with the flush it waits for."""
        if known.last_offset < self.log_end_offset:
            written = DONE
        elif known.last_offset < self._written_offset:
            written = self._flush_to(self._written_offset)
        else:
            written = self._tail.pending()
        return AppendInfo(
            known.first_offset,
            known.last_offset,
            known.timestamp,  # of either type, as Kafka answers
            self.log_start_offset,
            written,
            duplicate=True,
        )

    def _append_plain(self, header: BatchHeader, data: Buffer) -> AppendInfo:
        """`_append` of one batch with CreateTime."""
        try:
            self._place(header, data, header.max_timestamp, None, False)
            if self.error is not None:
                mending.cut_back(self, header.size_bytes)
                raise anew(self.error)
            written = self._tail.submit(self.segments.active)
        except OSError as error:
            self._write_failed(error, [], header.size_bytes)
        if self.error is not None:
            raise anew(self.error)
        return AppendInfo(
            header.base_offset,
            header.base_offset + header.last_offset_delta,
            -1,
            self.log_start_offset,
            written,
            False,
            header.last_offset_delta + 1,
            header.size_bytes,
        )

    def _append(self, placed: list[_Placed], append_time_ms: int) -> AppendInfo:
        """Give checked batches their places and their data to the tail."""
        size_bytes = 0
        try:
            for batch in placed:
                size_bytes += batch.header.size_bytes
                self._place(*batch)
                if self.error is not None:  # an epoch that could not be saved
                    mending.cut_back(self, size_bytes)
                    raise anew(self.error)
            written = self._tail.submit(self.segments.active)
        except OSError as error:
            self._write_failed(error, [], size_bytes)
        if self.error is not None:
            raise anew(self.error)
        first, last = placed[0].header.base_offset, placed[-1].header.last_offset
        return AppendInfo(
            first,
            last,
            append_time_ms,
            self.log_start_offset,
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
        base_offset = header.base_offset
        last_offset = base_offset + header.last_offset_delta
        segment = self.segments.active
        assigned_bytes = segment.assigned_bytes
        is_due = (
            assigned_bytes + header.size_bytes > self.config.segment_bytes
            or maintenance.must_roll(self, segment, last_offset, max_timestamp)
        )
        if is_due and (assigned_bytes or last_offset - segment.base_offset > OFFSET_DELTA_MAX):
            segment = maintenance.roll(self, base_offset)
        segment.assign(header, base_offset, max_timestamp)
        self._next_offset = last_offset + 1
        if header.partition_leader_epoch > self.leader_epochs.latest_saved:
            self.leader_epochs.assign(header.partition_leader_epoch, base_offset)
        if header.producer_id >= 0:
            self.producers.remember(header.producer_id)
            aborted = self.producers.replay_batch(header, marker)
            if aborted is not None:
                segment.add_aborted_transaction(aborted)
        self._tail.add(data, is_owned)
