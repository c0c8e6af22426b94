"""Batch headers: fields, splitting of a buffer, stamping in place."""

from __future__ import annotations

import struct

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import (
    LOG_APPEND_TIME,
    BatchHeader,
    Codec,
    Record,
    add_sequence,
    build_batch,
    check_crc,
    iterate_headers,
    parse_header,
    read_records,
    stamp,
)


def batch(count: int = 3, **options: object) -> bytearray:
    records = [Record(0, 1000 + index, b"k", b"v%d" % index) for index in range(count)]
    return build_batch(records, **options)  # type: ignore[arg-type]


def test_a_header_has_the_fields_it_was_built_with() -> None:
    data = batch(
        base_offset=70,
        codec=Codec.ZSTD,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=2**31 - 2,
        transactional=True,
    )
    header = parse_header(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (70, 72, 73)
    assert header.size_bytes == len(data)
    assert header.codec == Codec.ZSTD
    assert header.is_compressed
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None
    assert header.has_producer_id
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1002)
    assert header.last_sequence == 0, "the sequence after 2**31 - 1 is 0"
    assert check_crc(data, 0, header)


def test_a_header_is_read_anywhere_in_any_buffer() -> None:
    data = batch()
    padded = b"xyz" + bytes(data) + b"tail"
    for buffer in (padded, bytearray(padded), memoryview(padded)):
        assert parse_header(buffer, 3) == parse_header(data)
        assert check_crc(buffer, 3, parse_header(buffer, 3))


@pytest.mark.parametrize("size", [0, 11, 12, 16, 17, 60])
def test_too_few_bytes_are_no_header(size: int) -> None:
    with pytest.raises(KafkaError) as raised:
        parse_header(batch()[:size])
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("position", "value"), [(8, -1), (8, 0), (8, 13), (8, 48)])
def test_a_length_below_the_header_is_corrupt(position: int, value: int) -> None:
    data = batch()
    struct.pack_into(">i", data, position, value)
    with pytest.raises(KafkaError) as raised:
        parse_header(data)
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


def test_splitting_stops_before_a_torn_batch_and_at_its_end() -> None:
    first, second = batch(base_offset=5), batch(base_offset=8)
    data = bytes(first + second)
    assert [position for position, _ in iterate_headers(data)] == [0, len(first)]
    for cut in range(len(first), len(data)):
        assert [position for position, _ in iterate_headers(data[:cut])] == [0]
        assert [position for position, _ in iterate_headers(data, 0, cut)] == [0]
    assert list(iterate_headers(data, len(data))) == []


def test_stamping_keeps_the_checksum_valid() -> None:
    data = batch()
    before = parse_header(data)
    stamp(data, 0, 12345, 6)
    after = parse_header(data)
    assert after == before._replace(base_offset=12345, partition_leader_epoch=6)
    assert check_crc(data, 0, after)


def test_stamping_an_append_time_rewrites_the_checksum() -> None:
    data = batch()
    view = memoryview(data)
    stamp(view, 0, 10, 1, append_time_ms=99_000)
    header = parse_header(data)
    assert header.is_log_append_time
    assert header.max_timestamp == 99_000
    assert check_crc(data, 0, header)
    assert {record.timestamp for record in read_records(data)} == {99_000}
    again = bytes(data)
    stamp(view, 0, 10, 1, append_time_ms=99_000)
    assert bytes(data) == again


def test_an_append_time_batch_may_be_built_at_once() -> None:
    data = batch(timestamp_type=LOG_APPEND_TIME, append_time_ms=77)
    assert [record.timestamp for record in read_records(data)] == [77, 77, 77]


def test_unknown_codecs_are_named_when_asked_for() -> None:
    data = batch()
    data[22] |= 5
    header = parse_header(data)
    with pytest.raises(KafkaError) as raised:
        _ = header.codec
    assert raised.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_sequences_turn_over() -> None:
    assert add_sequence(2**31 - 1, 1) == 0
    assert add_sequence(2**31 - 1, 5) == 4
    assert add_sequence(3, 4) == 7


def test_headers_are_values() -> None:
    assert isinstance(parse_header(batch()), BatchHeader)
    assert parse_header(batch()) == parse_header(batch())
