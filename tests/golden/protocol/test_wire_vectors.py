"""Every message of Kafka 4.4 at every version: the bytes that Kafka's code wrote, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol import coordinator_records, messages, metadata_records, schema
from tests.support.vectors import by_message, check_described, message_of, rows

VECTORS = by_message("wire")


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_a_message_decodes_and_encodes_as_kafka_does(name: str) -> None:
    cls = messages.by_name(name)
    versions = set()
    for row in VECTORS[name]:
        version, data = row["version"], bytes.fromhex(row["hex"])
        decoded, end = cls.decode_from(data, 0, version)
        assert end == len(data)
        check_described(decoded, row["value"], version)
        built = message_of(row)
        assert built.encode(version) == data, (version, row["case"])
        assert decoded.encode(version) == data, (version, row["case"])
        assert decoded == built
        versions.add(version)
    assert versions == set(range(cls.MIN_VERSION, cls.MAX_VERSION + 1))


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_a_message_stands_anywhere_in_a_buffer(name: str) -> None:
    cls = messages.by_name(name)
    for row in VECTORS[name]:
        version, data = row["version"], bytes.fromhex(row["hex"])
        buffer = bytearray(b"\xff" * 7 + data + b"\xff" * 5)
        decoded, end = cls.decode_from(memoryview(buffer), 7, version)
        assert end == 7 + len(data)
        assert decoded.encode(version) == data
        assert b"".join(decoded.encode_parts(version)) == data


def _framed(kind: str, *modules: str) -> list[Any]:
    """The rows of a type, every message of which is there (and every version: see above)."""
    framed = [row for row in rows("wire") if row["type"] == kind]
    known = {name for module in modules for name, its, _ in schema.names_in(module) if its == kind}
    assert {row["message"] for row in framed} == known
    return framed


def test_metadata_records_in_their_frame() -> None:
    framed = _framed("metadata", "metadata", "storage")
    for row in framed:
        data = bytes.fromhex(row["framed_hex"])
        message, version = metadata_records.decode_record(data, row["module"])
        assert version == row["version"]
        assert message == message_of(row)
        assert metadata_records.encode_record(message, version) == data


def test_coordinator_records_with_their_type_and_version() -> None:
    modules = ("group_coordinator", "transaction_coordinator", "share_coordinator")
    keys = _framed("coordinator-key", *modules)
    values = _framed("coordinator-value", *modules)
    for row in keys:
        data = bytes.fromhex(row["framed_hex"])
        key = coordinator_records.decode_key(row["module"], data)
        assert key == message_of(row)
        assert coordinator_records.encode_key(key) == data
        assert coordinator_records.key_type(data) == row["api_key"]
    for row in values:
        data = bytes.fromhex(row["framed_hex"])
        value = coordinator_records.decode_value(row["module"], row["api_key"], data)
        assert value == message_of(row)
        assert coordinator_records.encode_value(value, row["version"]) == data
        assert coordinator_records.value_version(data) == row["version"]


def test_every_request_and_response_has_vectors() -> None:
    from kwire.protocol.api_keys import API_KEYS

    for key, info in API_KEYS.items():
        for cls in (messages.request_class(key), messages.response_class(key)):
            assert cls.NAME in VECTORS
            assert info.min == cls.MIN_VERSION
            assert (info.unstable_max or info.max) == cls.MAX_VERSION
            assert key == cls.API_KEY
