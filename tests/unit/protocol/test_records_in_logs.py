"""Metadata and coordinator records of a later Kafka, and such as are damaged."""

from __future__ import annotations

import pytest

from kwire.protocol import coordinator_records, metadata_records
from kwire.protocol import messages as m
from kwire.protocol.errors import (
    EncodeError,
    MalformedError,
    UnsupportedRecordError,
    UnsupportedVersionError,
)

TOPIC = metadata_records.encode_record(m.TopicRecord(name="a", topic_id=b"i" * 16), 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x02" + TOPIC[1:], "frame version 2"),
        (b"\x00" + TOPIC[1:], "frame version 0"),
        (b"\x01\x06\x00", "unknown type 6"),
        (b"\x01\xff\x7f\x00", "unknown type 16383"),
        (b"\x01\x02\x01" + TOPIC[3:], "TopicRecord has version 1"),
    ],
)
def test_metadata_records_of_a_later_kafka_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(UnsupportedRecordError, match=said):
        metadata_records.decode_record(data)


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x01\x02", TOPIC[:-1], TOPIC + b"\0", b"\xff" * 9]
)
def test_damaged_metadata_records(data: bytes) -> None:
    with pytest.raises(MalformedError):
        metadata_records.decode_record(data)


def test_a_metadata_record_of_a_version_that_there_is_not() -> None:
    with pytest.raises(UnsupportedVersionError):
        metadata_records.encode_record(m.TopicRecord(), 1)


def test_coordinator_records_of_a_later_kafka_are_refused() -> None:
    with pytest.raises(UnsupportedRecordError, match="unknown type 9"):
        coordinator_records.decode_key("group-coordinator", b"\0\x09\0\x01a")
    with pytest.raises(UnsupportedRecordError, match="unknown type 9"):
        coordinator_records.decode_value("group-coordinator", 9, b"\0\0")
    with pytest.raises(UnsupportedRecordError, match="has version 5"):
        coordinator_records.decode_value("group-coordinator", 2, b"\0\x05")
    with pytest.raises(UnsupportedRecordError, match="has version -1"):
        coordinator_records.decode_value("group-coordinator", 2, b"\xff\xff")


def test_damaged_coordinator_records() -> None:
    for data in (b"", b"\0"):
        with pytest.raises(MalformedError):
            coordinator_records.decode_key("group-coordinator", data)
        with pytest.raises(MalformedError):
            coordinator_records.decode_value("group-coordinator", 2, data)
    with pytest.raises(MalformedError):
        coordinator_records.decode_key("group-coordinator", b"\0\x02\0\x09a")


def test_keys_and_values_are_not_mixed_up() -> None:
    with pytest.raises(EncodeError, match="not the key"):
        coordinator_records.encode_key(m.GroupMetadataValue())
    with pytest.raises(EncodeError, match="not the value"):
        coordinator_records.encode_value(m.GroupMetadataKey(), 0)
