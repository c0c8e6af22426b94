"""Messages of magic 0 and 1, made here by hand: reading, faults, conversion to magic 2."""

from __future__ import annotations

import struct
import zlib

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import (
    Codec,
    check_crc,
    compress,
    iterate_headers,
    legacy,
    parse_header,
    read_batch,
    read_records,
)


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = 5000,
) -> bytes:
    def field(content: bytes | None) -> bytes:
        return (
            struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
        )

    time = struct.pack(">q", timestamp) if magic else b""
    body = struct.pack(">bb", magic, attributes) + time + field(key) + field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(magic: int, offset: int, inner: bytes, codec: Codec, **options: int) -> bytes:
    attributes = options.pop("attributes", 0) | codec
    return message(magic, offset, compress(codec, inner), attributes=attributes, **options)


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages(magic: int) -> None:
    data = message(magic, 3, b"v", key=b"k") + message(magic, 4, None) + message(magic, 5, b"")
    time = 5000 if magic else -1
    assert [tuple(record)[:4] for record in read_records(data, verify_crc=True)] == [
        (3, time, b"k", b"v"),
        (4, time, None, None),
        (5, time, None, b""),
    ]
    header = parse_header(data)
    assert (header.magic, header.last_offset, header.record_count) == (magic, 3, 1)
    assert not header.is_transactional
    assert not header.is_control


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_wrappers(codec: Codec) -> None:
    inner0 = b"".join(message(0, 40 + index, b"v%d" % index) for index in range(3))
    data = wrapper(0, 42, inner0, codec)
    assert [record.offset for record in read_batch(data)] == [40, 41, 42]
    inner1 = b"".join(message(1, index, b"v%d" % index, timestamp=60 + index) for index in range(3))
    data = wrapper(1, 42, inner1, codec, timestamp=62)
    assert [(r.offset, r.timestamp) for r in read_batch(data)] == [(40, 60), (41, 61), (42, 62)]
    data = wrapper(1, 42, inner1, codec, timestamp=99, attributes=8)
    assert [record.timestamp for record in read_batch(data)] == [99, 99, 99]
    assert legacy.base_offset(data, 0, parse_header(data)) == 40


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (message(1, 3, b"v")[:-1], ErrorCode.CORRUPT_MESSAGE),
        (wrapper(1, 0, message(0, 0, b"v"), Codec.GZIP), ErrorCode.INVALID_RECORD),
        (wrapper(1, 0, b"", Codec.GZIP), ErrorCode.INVALID_RECORD),
        (wrapper(1, 0, message(1, 0, b"v")[:-1], Codec.GZIP), ErrorCode.INVALID_RECORD),
        (
            wrapper(1, 0, wrapper(1, 0, message(1, 0, b"v"), Codec.GZIP), Codec.GZIP),
            ErrorCode.INVALID_RECORD,
        ),
        (message(1, 0, b"not gzip", attributes=1), ErrorCode.INVALID_RECORD),
        (message(1, 0, None, attributes=1), ErrorCode.INVALID_RECORD),
        (wrapper(1, 0, message(1, 0, b"v"), Codec.ZSTD), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_faults_have_a_code(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        read_batch(data)
    assert raised.value.code == code


def test_a_wrong_checksum_inside_a_wrapper_is_noticed() -> None:
    inner = bytearray(message(1, 0, b"value"))
    inner[-1] ^= 1
    with pytest.raises(KafkaError) as raised:
        read_batch(wrapper(1, 0, bytes(inner), Codec.GZIP))
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


def test_fields_longer_than_their_message_are_refused() -> None:
    data = bytearray(message(1, 0, b"value", key=b"k"))
    struct.pack_into(">i", data, 26, 1000)
    with pytest.raises(KafkaError) as raised:
        read_batch(data)
    assert raised.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_conversion_keeps_offsets_times_and_codec(codec: Codec) -> None:
    inner = b"".join(message(1, index * 2, b"v%d" % index) for index in range(3))
    data = message(1, 44, b"v", key=b"k") if codec == Codec.NONE else wrapper(1, 44, inner, codec)
    header = parse_header(data)
    made = legacy.convert(data, 0, header, leader_epoch=6)
    after = parse_header(made)
    assert read_batch(made) == read_batch(data)
    assert (after.magic, after.codec, after.partition_leader_epoch) == (2, codec, 6)
    assert after.last_offset == 44
    assert check_crc(made, 0, after)


def test_both_magics_beside_each_other() -> None:
    data = message(0, 1, b"a") + message(1, 2, b"b")
    assert [header.magic for _, header in iterate_headers(data)] == [0, 1]
