"""Messages of magic 0 and 1, as old logs hold them: reading, and conversion to magic 2.

| offset | size | type   | field                                                       |
|--------|------|--------|-------------------------------------------------------------|
| 0      | 8    | int64  | offset                                                      |
| 8      | 4    | int32  | size of what follows                                        |
| 12     | 4    | uint32 | CRC-32 of what follows                                      |
| 16     | 1    | int8   | magic, 0 or 1                                               |
| 17     | 1    | int8   | attributes: bits 0-2 codec, bit 3 append time (magic 1)     |
| 18     | 8    | int64  | timestamp in ms (magic 1 only)                              |
|        | 4    | int32  | key length, -1 is null; key                                 |
|        | 4    | int32  | value length, -1 is null; value                             |

With a codec the value is a compressed run of such messages. Inner offsets of magic 0 are
absolute; those of magic 1 count from any base, and the outer offset is that of the last one.
"""

from __future__ import annotations

from struct import Struct

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.build import build_batch
from kwire.protocol.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from kwire.protocol.records.header import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    PREFIX_SIZE,
    BatchHeader,
    Buffer,
    Codec,
    check_crc,
    iterate_headers,
)
from kwire.protocol.records.record import Record

_LENGTH = Struct(">i")


def read_message(
    buffer: Buffer,
    offset: int,
    header: BatchHeader,
    size_max: int = MAX_DECOMPRESSED_BYTES,
) -> list[Record]:
    """The record of the message at `offset`, or those inside it when it is a wrapper.

    Raises KafkaError: INVALID_RECORD for a malformed message or a wrapper whose content is of
    another magic or compressed again, CORRUPT_MESSAGE when it is not whole, does not decompress,
    or an inner checksum is wrong, RECORD_LIST_TOO_LARGE.
    """
    key, value = _fields(buffer, offset, header)
    codec = header.codec
    if codec == Codec.NONE:
        return [Record(header.base_offset, header.base_timestamp, key, value, [])]
    if codec == Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd is for record batches of magic 2 only"
        )
    if value is None:
        raise _invalid("a compressed message without value", offset)
    text = decompress(codec, value, size_max, legacy_lz4=header.magic == 0)
    return _read_inner(text, header)


def _read_inner(text: Buffer, outer: BatchHeader) -> list[Record]:
    records: list[Record] = []
    position = 0
    for position, inner in iterate_headers(text):
        if inner.magic != outer.magic or inner.is_compressed:
            raise _invalid(
                f"magic {inner.magic}, attributes {inner.attributes} inside magic {outer.magic}",
                position,
            )
        if not check_crc(text, position, inner):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt at {position}")
        key, value = _fields(text, position, inner)
        timestamp = outer.base_timestamp if outer.is_log_append_time else inner.base_timestamp
        records.append(Record(inner.base_offset, timestamp, key, value, []))
        position += inner.size_bytes
    if not records or position != len(text):
        raise _invalid("a compressed message whose content is empty or torn", position)
    if outer.magic == 0:
        return records
    shift = outer.base_offset - records[-1].offset
    return [record._replace(offset=record.offset + shift) for record in records]


def _fields(buffer: Buffer, offset: int, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    end = offset + header.size_bytes
    if end > len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The message at {offset} is not whole")
    position = offset + PREFIX_SIZE + (14 if header.magic else 6)
    key, position = _field(buffer, position, end)
    value, position = _field(buffer, position, end)
    return key, value


def _field(buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    if position + 4 > end:
        raise _invalid("a field that is not whole", position)
    size: int = _LENGTH.unpack_from(buffer, position)[0]
    position += 4
    if size < 0:
        return None, position
    if size > end - position:
        raise _invalid(f"a field of {size} bytes", position)
    return bytes(buffer[position : position + size]), position + size


def base_offset(buffer: Buffer, offset: int, header: BatchHeader) -> int:
    """Offset of the first record in the message at `offset` (deep: a wrapper is opened)."""
    if not header.is_compressed:
        return header.base_offset
    return read_message(buffer, offset, header)[0].offset


def convert(
    buffer: Buffer, offset: int, header: BatchHeader, *, leader_epoch: int = -1
) -> bytearray:
    """The message at `offset` as a batch of magic 2 with the same offsets and codec.

    Magic-0 messages have no time: their records get -1. Raises what `read_message` raises.
    """
    records = read_message(buffer, offset, header)
    return build_batch(
        records,
        base_offset=records[0].offset,
        codec=header.codec,
        leader_epoch=leader_epoch,
        timestamp_type=LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME,
        append_time_ms=header.base_timestamp if header.is_log_append_time else None,
    )


def _invalid(what: str, position: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"Found invalid message: {what} (at {position})")
