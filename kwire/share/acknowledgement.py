"""What a member says of records it acquired: accepted, released, rejected, renewed, or a gap.

All batches of an acknowledgement succeed or none does, but for locks that were renewed by then.
Offsets before the start are done with already: nothing is said of them, and that is no error. The
texts are Kafka's. Source: KIP-932, KIP-1222; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.changes import AcknowledgedBatch, StateChange, Transition
from kwire.share.in_flight import InFlightBatch, RecordStatus
from kwire.share.partition import SharePartition
from kwire.share.states import (
    ACKNOWLEDGED_AS,
    ACQUIRED,
    ARCHIVING,
    AcknowledgeType,
    RecordState,
    invalid_record_state,
)

NOT_FOUND = "Batch record not found. "


def acknowledge(
    partition: SharePartition,
    member_id: str,
    batches: Iterable[AcknowledgedBatch],
    now_ms: int,
) -> StateChange:
    """Begin what a member asks for. INVALID_RECORD_STATE, INVALID_REQUEST: nothing has changed."""
    acknowledgement = _Acknowledgement(partition, member_id, now_ms)
    try:
        for batch in batches:
            if batch.last_offset >= partition.start_offset:
                acknowledgement.add(batch)
    except KafkaError:
        partition.take_back(acknowledgement.transitions)
        raise
    return StateChange(tuple(acknowledgement.transitions), can_fail=True)


class _Acknowledgement:
    """One call of `acknowledge`."""

    __slots__ = ("_member_id", "_now_ms", "_partition", "transitions")

    def __init__(self, partition: SharePartition, member_id: str, now_ms: int) -> None:
        self._partition = partition
        self._member_id = member_id
        self._now_ms = now_ms
        self.transitions: list[Transition] = []

    def add(self, said: AcknowledgedBatch) -> None:
        """One batch of the request: each batch in flight it touches, as a whole where it can."""
        for batch in self._touched(said):
            is_whole = (
                batch.first_offset >= said.first_offset
                and batch.last_offset <= said.last_offset
                and len(said.types) <= 1
            )
            if batch.offsets is None:
                self._check_batch(batch.status)
                if is_whole:
                    whole = batch.status
                    if whole.state is not ACQUIRED:
                        raise invalid_record_state(
                            "The batch cannot be acknowledged. "
                            "The batch is not in the acquired state."
                        )
                    self._say(batch.first_offset, batch.last_offset, whole, said.types[0])
                    continue
                if batch.status.state is not ACQUIRED:
                    raise invalid_record_state(
                        "The batch cannot be acknowledged. "
                        "The subset batch is not in the acquired state."
                    )
                self._partition.split(batch)
            for offset, status in batch.within(said.first_offset, said.last_offset):
                self._check_record(status)
                at = offset - said.first_offset if len(said.types) > 1 else 0
                self._say(offset, offset, status, said.types[at])

    def _touched(self, said: AcknowledgedBatch) -> Sequence[InFlightBatch]:
        """The batches in flight that hold what is acknowledged."""
        partition = self._partition
        begin = max(said.first_offset, partition.start_offset)
        at = partition.batch_at(begin)
        if at < 0:
            raise invalid_record_state(
                f"{NOT_FOUND}The request batch offsets are not found in the cache."
            )
        if partition.batches[at].last_offset < begin and said.first_offset < begin:
            at += 1  # the log has nothing at the start
        end = partition.batch_at(said.last_offset) + 1
        touched = partition.batches[at:end]
        if not touched or touched[-1].last_offset < begin:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{NOT_FOUND}The first offset in request is past acquired records.",
            )
        if said.last_offset > touched[-1].last_offset:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{NOT_FOUND}The last offset in request is past acquired records.",
            )
        return touched

    def _check_batch(self, status: RecordStatus) -> None:
        if not status.member_id:
            raise invalid_record_state(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if status.member_id != self._member_id:
            raise invalid_record_state("Member is not the owner of batch record")

    def _check_record(self, status: RecordStatus) -> None:
        if status.state is not ACQUIRED:
            raise invalid_record_state(
                "The offset cannot be acknowledged. The offset is not acquired."
            )
        if status.member_id != self._member_id:
            raise invalid_record_state("Member is not the owner of offset")

    def _say(self, first: int, last: int, status: RecordStatus, kind: int) -> None:
        partition, settings = self._partition, self._partition.settings
        if kind == AcknowledgeType.RENEW:
            if not settings.may_renew:
                raise invalid_record_state(
                    "Renewing acquisition locks is not enabled for the group."
                )
            partition.lock(first, last, status, self._now_ms)
            return
        state: RecordState = ACKNOWLEDGED_AS[kind]
        if kind == AcknowledgeType.REJECT and settings.has_dead_letters:
            state = ARCHIVING
        self.transitions.append(partition.begin(first, last, status, state))


def check(batches: Sequence[AcknowledgedBatch], may_renew: bool = True) -> str | None:
    """What is wrong with the batches of a request for one partition, None for nothing.

    They ascend, and each has one type or one for every offset. One may begin where the one before
    it ends: the state of the record refuses it then, as in Apache Kafka 4.4.
    """
    last_offset = -1
    for batch in batches:
        if batch.first_offset > batch.last_offset or batch.first_offset < last_offset:
            return "offsets"
        last_offset = batch.last_offset
        count = len(batch.types)
        if not count or (count > 1 and count != batch.last_offset - batch.first_offset + 1):
            return "types"
        highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if min(batch.types) < 0 or max(batch.types) > highest:
            return "types"
    return None
