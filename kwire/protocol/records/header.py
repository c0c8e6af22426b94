"""The header of a record batch of magic 2, and what magic 0 and 1 share of it.

| offset | size | type   | field                                                                  |
|--------|------|--------|------------------------------------------------------------------------|
| 0      | 8    | int64  | base offset (magic 0 and 1: offset of the message, the last one inside) |
| 8      | 4    | int32  | length of all that follows                                             |
| 12     | 4    | int32  | partition leader epoch (magic 0 and 1: CRC-32)                         |
| 16     | 1    | int8   | magic                                                                  |
| 17     | 4    | uint32 | CRC-32C of everything from byte 21 on (magic 0 and 1: attributes, ...) |
| 21     | 2    | int16  | attributes: bits 0-2 codec, 3 append time, 4 transactional, 5 control, |
|        |      |        | 6 the base timestamp field holds the delete horizon                    |
| 23     | 4    | int32  | last offset delta                                                      |
| 27     | 8    | int64  | base timestamp (ms), or the delete horizon                             |
| 35     | 8    | int64  | max timestamp (ms), or the append time                                 |
| 43     | 8    | int64  | producer id, -1 without one                                            |
| 51     | 2    | int16  | producer epoch                                                         |
| 53     | 4    | int32  | base sequence                                                          |
| 57     | 4    | int32  | record count                                                           |
| 61     |      |        | records, compressed as a whole when there is a codec                   |

Base offset and leader epoch are outside the checksum: a broker stamps them in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple, TypeAlias

from kwire.checksums import crc32c
from kwire.protocol.errors import ErrorCode, KafkaError

Buffer: TypeAlias = bytes | bytearray | memoryview

PREFIX_SIZE = 12  # base offset and length
MAGIC_POSITION = 16
HEADER_SIZE = 61
RECORDS_POSITION = 61
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
SIZE_MIN_LEGACY = PREFIX_SIZE + 14
MAGIC_CURRENT = 2

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

HEADER = Struct(">qiibIhiqqqhii")
_LEGACY = Struct(">qiIbb")
_PREFIX = Struct(">qi")
_STAMP_OFFSET = Struct(">q")
_STAMP_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES_AND_CRC = Struct(">Ih")
_INT64 = Struct(">q")
_OFFSET_MAX = (1 << 63) - 1
_OUTLINE = Struct(">qi4xb4xhi16xq")


class Codec(IntEnum):
    """Compression codecs by their number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS = tuple(Codec)


class BatchHeader(NamedTuple):
    """The fields of a batch header; `size_bytes` is the whole batch including its 12-byte prefix.

    For magic 0 and 1 (one message, or one wrapper of compressed messages) `base_offset` is the
    message's offset, which for a wrapper is the offset of its last inner message; producer fields
    are -1, `record_count` is -1 for a wrapper, and a magic-0 message has timestamp -1.
    """

    base_offset: int
    size_bytes: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """Raises KafkaError(UNSUPPORTED_COMPRESSION_TYPE) for codec numbers 5 to 7."""
        number = self.attributes & CODEC_MASK
        if number >= len(_CODECS):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {number}"
            )
        return _CODECS[number]

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and self.attributes & CONTROL_BIT != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.magic >= 1 and self.attributes & APPEND_TIME_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.magic >= 2 and self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones or the marker of this batch may go, where compaction set it."""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; after 2**31 - 1 comes 0. -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(self.base_sequence, self.last_offset_delta)


_new_header = tuple.__new__  # without the detour through keyword arguments


def add_sequence(sequence: int, increment: int) -> int:
    """`sequence + increment` in the circle 0 .. 2**31 - 1."""
    return (sequence + increment) & 0x7FFFFFFF


class NoBatchError(KafkaError):
    """CORRUPT_MESSAGE for bytes that cannot be cut into batches; Kafka tells the client why."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


def parse_header(buffer: Buffer, offset: int = 0) -> BatchHeader:
    """The header of the batch that starts at `offset`.

    Raises KafkaError(CORRUPT_MESSAGE) when the bytes cannot be a batch: fewer than a header, a
    length below the minimum of its magic, or a magic that does not exist. Whether the whole
    batch is in the buffer and whether its checksum holds is not looked at.
    """
    available = len(buffer) - offset
    if available < MAGIC_POSITION + 1:
        raise _corrupt(f"{available} bytes are too few for a record batch")
    magic = buffer[offset + MAGIC_POSITION]
    if magic == MAGIC_CURRENT:
        if available < HEADER_SIZE:
            raise _corrupt(f"{available} bytes are too few for a record batch header")
        fields = HEADER.unpack_from(buffer, offset)
        size_bytes = fields[1] + PREFIX_SIZE
        if size_bytes < HEADER_SIZE:
            if size_bytes < SIZE_MIN_LEGACY:
                raise _no_batch(fields[1])
            raise _corrupt(
                f"Record batch is corrupted (the size {size_bytes} is smaller than the minimum "
                f"allowed overhead {HEADER_SIZE})"
            )
        return _new_header(BatchHeader, (fields[0], size_bytes, *fields[2:]))
    if magic > MAGIC_CURRENT:
        raise _corrupt(f"Invalid magic found in record: {_signed_byte(magic)}")
    return _parse_legacy(buffer, offset, available)


def _no_batch(length: int) -> NoBatchError:
    return NoBatchError(f"Record size {length} is less than the minimum record overhead (14)")


def _parse_legacy(buffer: Buffer, offset: int, available: int) -> BatchHeader:
    last_offset, length, crc, magic, attributes = (
        _LEGACY.unpack_from(buffer, offset) if (available >= _LEGACY.size) else (0, 0, 0, 0, 0)
    )
    size_bytes = length + PREFIX_SIZE
    size_min = SIZE_MIN_LEGACY + (8 if magic else 0)
    if size_bytes < size_min or available < size_min:
        raise _corrupt(f"Record size {length} is less than the minimum record overhead")
    timestamp = _INT64.unpack_from(buffer, offset + 18)[0] if magic else NO_TIMESTAMP
    count = -1 if attributes & CODEC_MASK else 1
    return BatchHeader(
        last_offset,
        size_bytes,
        NO_LEADER_EPOCH,
        magic,
        crc,
        attributes & 0xFF,
        0,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        -1,
        NO_SEQUENCE,
        count,
    )


def next_batch_size(buffer: Buffer, offset: int, end: int) -> int:
    """Size of the whole batch that starts at `offset`, or 0 when it does not fit before `end`.

    This is how Kafka splits a buffer into batches. Raises NoBatchError for a length below 14 or a
    magic other than 0, 1 and 2.
    """
    available = end - offset
    if available < PREFIX_SIZE:
        return 0
    length: int = _PREFIX.unpack_from(buffer, offset)[1]
    if length < SIZE_MIN_LEGACY - PREFIX_SIZE:
        raise _no_batch(length)
    if available < MAGIC_POSITION + 1:
        return 0
    magic = buffer[offset + MAGIC_POSITION]
    if magic > MAGIC_CURRENT:
        raise NoBatchError(f"Invalid magic found in record: {_signed_byte(magic)}")
    size_bytes = length + PREFIX_SIZE
    return size_bytes if size_bytes <= available else 0


def iterate_headers(
    buffer: Buffer, offset: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in `buffer[offset:end]`; stops before a torn one.

    Raises KafkaError(CORRUPT_MESSAGE) where the bytes cannot be a batch.
    """
    limit = len(buffer) if end is None else end
    while size_bytes := next_batch_size(buffer, offset, limit):
        yield offset, parse_header(buffer, offset)
        offset += size_bytes


Outline = tuple[int, int, int, int, int]
"""(base offset, last offset, size in bytes, attributes, producer id) of a batch."""


def outline(buffer: Buffer, offset: int) -> Outline | None:
    """The outline of the batch whose header is at `offset`, whole or not; None for one of the old
    formats, and where there is none."""
    if offset + HEADER_SIZE > len(buffer):
        return None
    base, length, magic, attributes, delta, producer_id = _OUTLINE.unpack_from(buffer, offset)
    if magic != MAGIC_CURRENT or length + PREFIX_SIZE < HEADER_SIZE:
        return None
    return base, base + delta, length + PREFIX_SIZE, attributes, producer_id


def outlines(buffer: Buffer, until: int = _OFFSET_MAX) -> list[Outline]:
    """The outlines of whole batches, up to the first one that reaches the offset `until`.

    As `iterate_headers`, at a third of its cost, for whoever looks at every batch it gives out.
    """
    found: list[Outline] = []
    offset, limit = 0, len(buffer)
    while offset + HEADER_SIZE <= limit:
        base, length, magic, attributes, delta, producer_id = _OUTLINE.unpack_from(buffer, offset)
        if magic != MAGIC_CURRENT or length + PREFIX_SIZE < HEADER_SIZE:
            break
        size_bytes = length + PREFIX_SIZE
        if offset + size_bytes > limit:
            return found
        found.append((base, base + delta, size_bytes, attributes, producer_id))
        if base + delta >= until:
            return found
        offset += size_bytes
    for _, header in iterate_headers(buffer, offset):  # of the old formats, or corrupt
        found.append(
            (
                header.base_offset,
                header.last_offset,
                header.size_bytes,
                header.attributes if header.magic >= MAGIC_CURRENT else 0,
                header.producer_id,
            )
        )
        if header.last_offset >= until:
            break
    return found


def compute_crc(buffer: Buffer, offset: int, size_bytes: int) -> int:
    """CRC-32C of the magic-2 batch at `offset`: everything from its attributes on."""
    view = buffer if isinstance(buffer, memoryview) else memoryview(buffer)
    with view[offset + ATTRIBUTES_POSITION : offset + size_bytes] as covered:
        return crc32c(covered)


def check_crc(buffer: Buffer, offset: int, header: BatchHeader) -> bool:
    """Whether the checksum of the batch holds (CRC-32C for magic 2, CRC-32 before)."""
    if header.magic == MAGIC_CURRENT:
        return compute_crc(buffer, offset, header.size_bytes) == header.crc
    from zlib import crc32

    with memoryview(buffer) as view:
        return crc32(view[offset + MAGIC_POSITION : offset + header.size_bytes]) == header.crc


def stamp(
    buffer: bytearray | memoryview,
    offset: int,
    base_offset: int,
    leader_epoch: int,
    append_time_ms: int | None = None,
) -> None:
    """Give the magic-2 batch at `offset` its base offset and leader epoch, in place.

    With `append_time_ms` it also becomes a batch of type LogAppendTime with that time as its max
    timestamp; only then the checksum is computed again (as Kafka does, unless nothing changed).
    """
    _STAMP_OFFSET.pack_into(buffer, offset, base_offset)
    _STAMP_EPOCH.pack_into(buffer, offset + PREFIX_SIZE, leader_epoch)
    if append_time_ms is not None:
        stamp_timestamp(buffer, offset, LOG_APPEND_TIME, append_time_ms)


def stamp_timestamp(
    buffer: bytearray | memoryview, offset: int, timestamp_type: int, max_timestamp: int
) -> None:
    """Set timestamp type and max timestamp of the magic-2 batch at `offset`, and its checksum.

    Does nothing when both are so already. Otherwise the attributes are written anew: bits without
    a meaning are lost, as in Kafka.
    """
    header = parse_header(buffer, offset)
    attributes = header.attributes & ~APPEND_TIME_BIT
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= APPEND_TIME_BIT
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return
    _ATTRIBUTES_AND_CRC.pack_into(buffer, offset + CRC_POSITION, 0, attributes & 0x7F)
    _INT64.pack_into(buffer, offset + 35, max_timestamp)
    crc = compute_crc(buffer, offset, header.size_bytes)
    _CRC.pack_into(buffer, offset + CRC_POSITION, crc)


def _signed_byte(value: int) -> int:
    return value - 256 if value > 127 else value


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
