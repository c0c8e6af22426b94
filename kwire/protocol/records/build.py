"""Building record batches of magic 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from kwire.checksums import crc32c
from kwire.protocol.records.compression import compress
from kwire.protocol.records.header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    CRC_POSITION,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MAGIC_CURRENT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    compute_crc,
)
from kwire.protocol.records.record import Record

_SMALL = tuple(bytes([value]) for value in range(128))
_STARTS_COUNT = 64
_STARTS = tuple(bytes((0, 0, delta << 1)) for delta in range(_STARTS_COUNT))
"""What stands in front of a record's key at the batch's first timestamp: attributes, timestamp and
offset delta."""
_FRONT = Struct(">qiibI").pack
_COVERED = Struct(">hiqqqhii").pack
"""A header up to its checksum, and what the checksum covers of it."""
_new_header = tuple.__new__
WIDEST_TIMESTAMP_DELTA = -(2**63)
WIDEST_OFFSET_DELTA = 2**31 - 1


def varint(value: int) -> bytes:
    """`value` (int64) as a zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 128:
        return _SMALL[rest]
    if rest < 16384:
        return bytes((rest & 0x7F | 0x80, rest >> 7))
    out = bytearray()
    while rest > 127:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str | bytes, bytes | None]],
) -> bytes:
    """One record with its length in front."""
    parts = [b"\x00", varint(timestamp_delta), varint(offset_delta)]
    for field in (key, value):
        if field is None:
            parts.append(b"\x01")
        else:
            parts.append(varint(len(field)))
            parts.append(field)
    parts.append(varint(len(headers)))
    for name, content in headers:
        raw = name.encode() if isinstance(name, str) else name
        parts.append(varint(len(raw)))
        parts.append(raw)
        if content is None:
            parts.append(b"\x01")
        else:
            parts.append(varint(len(content)))
            parts.append(content)
    body = b"".join(parts)
    return varint(len(body)) + body


def record_size(
    record: Record,
    *,
    timestamp_delta: int = WIDEST_TIMESTAMP_DELTA,
    offset_delta: int = WIDEST_OFFSET_DELTA,
) -> int:
    """The bytes of `encode_record`. Where the record's place in its batch is not known, the deltas
    are the widest ones: it takes as many at most."""
    size = 1 + _varint_size(timestamp_delta) + _varint_size(offset_delta)
    size += _field_size(record.key) + _field_size(record.value)
    size += _varint_size(len(record.headers))
    for name, value in record.headers:
        if isinstance(name, bytes) or name.isascii():
            length = len(name)
        else:
            length = len(name.encode())
        size += _varint_size(length) + length + _field_size(value)
    return size + _varint_size(size)


def _field_size(value: bytes | None) -> int:
    if value is None:
        return 1
    length = len(value)
    return length + (1 if length < 64 else _varint_size(length))


def _varint_size(value: int) -> int:
    rest = (value << 1) ^ (value >> 63)
    return max(1, (rest.bit_length() + 6) // 7)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    timestamp_type: int = CREATE_TIME,
    append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
) -> bytearray:
    """A batch with these records.

    A record's `offset` below `base_offset` (0 for records not in a log yet) counts up from
    `base_offset`; otherwise it is kept, gaps included. `last_offset` may lie behind the last
    record (compaction); with it a batch may be empty. The base timestamp is that of the first
    record, or `delete_horizon_ms`. With LOG_APPEND_TIME the max timestamp is `append_time_ms`
    (default: the largest of the records).
    """
    kept = list(records)
    if not kept and last_offset is None:
        raise ValueError("a batch has at least one record, or a last offset")
    first_timestamp = kept[0].timestamp if kept else NO_TIMESTAMP
    base_timestamp = first_timestamp if delete_horizon_ms is None else delete_horizon_ms
    payload, last_delta = _encode_all(kept, base_offset, base_timestamp)
    max_timestamp = max((record.timestamp for record in kept), default=NO_TIMESTAMP)
    if timestamp_type == LOG_APPEND_TIME and append_time_ms is not None:
        max_timestamp = append_time_ms
    attributes = int(codec) if kept else 0
    attributes |= APPEND_TIME_BIT if timestamp_type == LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_BIT if transactional else 0
    attributes |= CONTROL_BIT if control else 0
    attributes |= DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0
    return assemble(
        compress(codec, payload, level) if codec and kept else payload,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=last_delta if last_offset is None else last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(kept),
    )


class MadeBatch(NamedTuple):
    """A batch that this process has made, in its place: what its header says is known, and needs no
    check. Only this file makes one: `make_plain` and `make_control`."""

    header: BatchHeader
    data: bytes


def framed(key: bytes, value: bytes | None) -> bytes:
    """A record without headers, from the length of its key on."""
    if value is None:
        return b"".join((varint(len(key)), key, b"\x01\x00"))
    return b"".join((varint(len(key)), key, varint(len(value)), value, b"\x00"))


def framing(key: bytes, value_size: int) -> tuple[bytes, bytes]:
    """What stands in a `framed` record in front of a value of so many bytes, and behind it."""
    return b"".join((varint(len(key)), key, varint(value_size))), b"\x00"


def make_plain(
    rows: Sequence[tuple[int, bytes]], base_sequence: int, base_offset: int, leader_epoch: int
) -> MadeBatch:
    """A batch of records without headers, (timestamp, `framed`) each, as `build_batch` makes it of
    them: uncompressed, CreateTime, no producer, the first one at `base_offset`."""
    base_timestamp = max_timestamp = rows[0][0]
    parts = [b""]
    delta = 0
    for timestamp, record in rows:
        if timestamp == base_timestamp and delta < _STARTS_COUNT:
            start = _STARTS[delta]
        else:
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            start = b"".join((b"\x00", varint(timestamp - base_timestamp), varint(delta)))
        parts.append(varint(len(start) + len(record)))
        parts.append(start)
        parts.append(record)
        delta += 1
    last = delta - 1
    return _made(
        base_offset,
        leader_epoch,
        (0, last, base_timestamp, max_timestamp, NO_PRODUCER_ID, -1, base_sequence, delta),
        parts,
    )


def make_control(
    record: bytes,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
) -> MadeBatch:
    """A control batch of a transaction with one `framed` record, as `build_batch` makes it."""
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    return _made(
        base_offset,
        leader_epoch,
        (attributes, 0, timestamp_ms, timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, 1),
        [b"", varint(len(_STARTS[0]) + len(record)), _STARTS[0], record],
    )


def _made(
    base_offset: int,
    leader_epoch: int,
    fields: tuple[int, int, int, int, int, int, int, int],
    parts: list[bytes],
) -> MadeBatch:
    """`fields` are those of the header from its attributes on; the first of `parts` is for them."""
    parts[0] = _COVERED(*fields)
    covered = b"".join(parts)
    crc = crc32c(covered)
    size_bytes = ATTRIBUTES_POSITION + len(covered)
    header = _new_header(
        BatchHeader, (base_offset, size_bytes, leader_epoch, MAGIC_CURRENT, crc, *fields)
    )
    front = _FRONT(base_offset, size_bytes - PREFIX_SIZE, leader_epoch, MAGIC_CURRENT, crc)
    return MadeBatch(header, front + covered)


def _encode_all(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    parts = []
    delta = -1
    for record in records:
        delta = record.offset - base_offset if record.offset > base_offset + delta else delta + 1
        parts.append(
            encode_record(
                record.timestamp - base_timestamp, delta, record.key, record.value, record.headers
            )
        )
    return b"".join(parts), delta


def assemble(
    payload: bytes | bytearray | memoryview,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytearray:
    """Header and payload (records, compressed as `attributes` say) as a batch with checksum."""
    size_bytes = HEADER_SIZE + len(payload)
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        size_bytes - PREFIX_SIZE,
        leader_epoch,
        MAGIC_CURRENT,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    batch += payload
    crc = compute_crc(batch, 0, size_bytes)
    batch[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return batch


def empty_batch(
    *,
    base_offset: int,
    last_offset: int,
    leader_epoch: int,
    attributes: int,
    base_timestamp: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytearray:
    """The header without records that compaction leaves of a live producer's last batch."""
    return assemble(
        b"",
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=0,
    )
