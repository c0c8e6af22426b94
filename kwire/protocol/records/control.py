"""Control records: the transaction markers, and what a raft log says about itself.

The key is int16 version 0 and int16 type. An abort or commit has the value int16 version 0 and
int32 coordinator epoch; the values of the others are messages whose first field is their version
(version 0, written without a prefix). Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.build import MadeBatch, build_batch, framed, make_control
from kwire.protocol.records.header import NO_PRODUCER_ID
from kwire.protocol.records.record import Record

if TYPE_CHECKING:
    from kwire.protocol import messages as m
    from kwire.protocol.structs import Message

_KEY = Struct(">hh")
_MARKER = Struct(">hi")
NO_PRODUCER_EPOCH = -1


class ControlType(IntEnum):
    """Types of control records; readers skip the ones they do not know."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_MESSAGES = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


class ControlRecord(NamedTuple):
    """A control record. `value` is its message (of kwire.protocol.messages), None for a marker.

    `coordinator_epoch` is that of a marker, -1 for the other types.
    """

    type: ControlType
    value: Any
    coordinator_epoch: int


def end_transaction_marker(
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A batch with the marker that ends a producer's transaction in a partition."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    record = Record(
        base_offset, timestamp_ms, _KEY.pack(0, kind), _MARKER.pack(0, coordinator_epoch)
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


class TransactionMarker(NamedTuple):
    """The marker that ends a producer's transaction in a partition, before it has its place.

    `batch` and `made` raise KafkaError(UNKNOWN_SERVER_ERROR) where its producer id or epoch is -1,
    which stands for none: Apache Kafka 4.4 appends no such marker, and says so (measured).
    """

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    timestamp_ms: int

    def batch(self) -> bytearray:
        """As a batch that is still to be checked and stamped."""
        self._check()
        return end_transaction_marker(*self)

    def made(self, base_offset: int, leader_epoch: int) -> MadeBatch:
        """The same in its place."""
        self._check()
        kind = ControlType.COMMIT if self.commit else ControlType.ABORT
        return make_control(
            framed(_KEY.pack(0, kind), _MARKER.pack(0, self.coordinator_epoch)),
            timestamp_ms=self.timestamp_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )

    def _check(self) -> None:
        if self.producer_id == NO_PRODUCER_ID or self.producer_epoch == NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"A marker of producer {self.producer_id} with epoch {self.producer_epoch} ends no "
                "transaction",
            )


def control_record(kind: ControlType, message: Message, timestamp_ms: int) -> Record:
    """A record for a raft control batch; `message` is the one that belongs to `kind`."""
    return Record(0, timestamp_ms, _KEY.pack(0, kind), message.encode(0))


def control_batch(
    records: list[Record], *, base_offset: int = 0, leader_epoch: int = -1
) -> bytearray:
    """A control batch of a raft log or snapshot with these records (see `control_record`)."""
    return build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def leader_change(message: m.LeaderChangeMessage, timestamp_ms: int) -> Record:
    """The record of a LeaderChangeMessage."""
    return control_record(ControlType.LEADER_CHANGE, message, timestamp_ms)


def snapshot_footer(message: m.SnapshotFooterRecord, timestamp_ms: int) -> Record:
    """The record of a SnapshotFooterRecord."""
    return control_record(ControlType.SNAPSHOT_FOOTER, message, timestamp_ms)


def kraft_version(message: m.KRaftVersionRecord, timestamp_ms: int) -> Record:
    """The record of a KRaftVersionRecord."""
    return control_record(ControlType.KRAFT_VERSION, message, timestamp_ms)


def voters(message: m.VotersRecord, timestamp_ms: int) -> Record:
    """The record of a VotersRecord."""
    return control_record(ControlType.KRAFT_VOTERS, message, timestamp_ms)


def control_type(record: Record) -> ControlType:
    """The type by the record's key; UNKNOWN for one this version does not know.

    Raises KafkaError(INVALID_RECORD) for a key that is not a control record's.
    """
    if record.key is None or len(record.key) < _KEY.size:
        size = -1 if record.key is None else len(record.key)
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Invalid size {size} of the key of a control record"
        )
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Invalid version {version} of the key of a control record"
        )
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def parse_control(record: Record) -> ControlRecord:
    """What a record of a control batch says.

    Raises KafkaError(INVALID_RECORD) for a key or value that is not a control record's.
    """
    kind = control_type(record)
    value = record.value
    if kind is ControlType.UNKNOWN:
        return ControlRecord(kind, None, -1)
    if value is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A control record without value")
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        if len(value) < _MARKER.size:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"Invalid size {len(value)} of the value of a marker"
            )
        version, epoch = _MARKER.unpack_from(value)
        if version < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"Invalid version {version} of a marker")
        return ControlRecord(kind, None, epoch)
    return ControlRecord(kind, _decode(_MESSAGES[kind], value), -1)


def _decode(name: str, value: bytes) -> Any:
    from kwire.protocol import messages
    from kwire.protocol.errors import MalformedError

    try:
        return getattr(messages, name).decode_from(value, 0, 0)[0]
    except MalformedError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{name}: {error}") from None
