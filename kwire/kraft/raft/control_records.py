"""Control records of the metadata log, and the shape of fetched batches.

key     int16 version 0, int16 type
value   the message itself at its version, whose first field says that version

type  2 LeaderChangeMessage  3 SnapshotHeaderRecord  4 SnapshotFooterRecord
      5 KRaftVersionRecord   6 VotersRecord
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from kwire.protocol import messages as m
from kwire.protocol import records
from kwire.protocol.errors import KafkaError, MalformedError

CONTROL_KEY_BYTES = 4

Buffer = bytes | bytearray | memoryview


class ControlType(IntEnum):
    """Control records that raft writes."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    VOTERS = 6


ControlMessage: TypeAlias = (
    "m.LeaderChangeMessage | m.SnapshotHeaderRecord | m.SnapshotFooterRecord"
    "| m.KRaftVersionRecord | m.VotersRecord"
)
ControlRecord: TypeAlias = "tuple[ControlType, ControlMessage]"


class ControlEntry(NamedTuple):
    """One control record: offset, type (any int16), message (None for a type not ours)."""

    offset: int
    type: int
    message: ControlMessage | None


class BatchShape(NamedTuple):
    """What raft needs to know of a batch."""

    base_offset: int
    last_offset: int
    epoch: int
    control: tuple[ControlEntry, ...]


def encode_control(kind: int, message: ControlMessage) -> tuple[bytes, bytes]:
    """Key and value of a control record."""
    key = (0).to_bytes(2, "big") + int(kind).to_bytes(2, "big")
    return key, message.encode(message.version)


def decode_control(offset: int, key: Buffer | None, value: Buffer | None) -> ControlEntry:
    """A control record; raises MalformedError when its key or value cannot be one."""
    if key is None or len(key) < CONTROL_KEY_BYTES:
        raise MalformedError(f"control record at {offset} has no type")
    kind = int.from_bytes(key[2:4], "big", signed=True)
    return ControlEntry(offset, kind, None if value is None else _decode(kind, value))


def _decode(kind: int, value: Buffer) -> ControlMessage | None:
    if kind == ControlType.LEADER_CHANGE:
        return m.LeaderChangeMessage.decode(value, 0)
    if kind == ControlType.SNAPSHOT_HEADER:
        return m.SnapshotHeaderRecord.decode(value, 0)
    if kind == ControlType.SNAPSHOT_FOOTER:
        return m.SnapshotFooterRecord.decode(value, 0)
    if kind == ControlType.KRAFT_VERSION:
        return m.KRaftVersionRecord.decode(value, 0)
    if kind == ControlType.VOTERS:
        return m.VotersRecord.decode(value, 0)
    return None


def build_control_batch(
    entries: tuple[ControlRecord, ...], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """One control batch of (type, message) entries."""
    batch = []
    for index, (kind, message) in enumerate(entries):
        key, value = encode_control(kind, message)
        batch.append(records.Record(base_offset + index, timestamp_ms, key, value, []))
    return records.build_batch(batch, base_offset=base_offset, leader_epoch=epoch, control=True)


def batch_shapes(
    buffer: Buffer, *, next_offset: int, epoch_max: int
) -> tuple[list[BatchShape], int]:
    """The whole and sound batches at the start of what a leader sent, and how many bytes they are.

    Stops before a batch that is cut off, corrupt, does not continue at `next_offset` or has an
    epoch above `epoch_max`: a follower appends what is good and fetches the rest again.
    """
    view = memoryview(buffer)
    shapes: list[BatchShape] = []
    end = 0
    epoch = -1
    try:
        for position, header in records.iterate_headers(view):
            control: tuple[ControlEntry, ...] = ()
            if (
                header.base_offset != next_offset
                or header.magic != 2
                or not epoch <= header.partition_leader_epoch <= epoch_max
                or header.last_offset_delta < 0
            ):
                break
            records.validate_batch(view, position, header)
            if header.is_control:
                control = tuple(
                    decode_control(record.offset, record.key, record.value)
                    for record in records.read_batch(view, position)
                )
            epoch = header.partition_leader_epoch
            shapes.append(BatchShape(header.base_offset, header.last_offset, epoch, control))
            next_offset = header.next_offset
            end = position + header.size_bytes
    except (KafkaError, MalformedError):
        pass
    return shapes, end
