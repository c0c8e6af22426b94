"""Record batches that Kafka 4.4 wrote: read as Kafka reads them, written as Kafka writes them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.kernels import record_packages
from tests.support.vectors import rows

ERRORS = {  # Kafka's exception -> kwire's error
    "CorruptRecordException": ErrorCode.CORRUPT_MESSAGE,
    "InvalidRecordException": ErrorCode.INVALID_RECORD,
    "IllegalArgumentException": ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    "KafkaException": ErrorCode.INVALID_RECORD,
}
packages = pytest.mark.parametrize("records", record_packages())


def vectors() -> list[dict[str, Any]]:
    return rows("batches")


WRITTEN = [
    index for index, vector in enumerate(vectors()) if not vector["case"].startswith("damaged")
]


def raw(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def wanted_records(batch: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            record["offset"],
            record["timestamp"],
            raw(record["key"]),
            raw(record["value"]),
            [(name, raw(value)) for name, value in record.get("headers", [])],
        )
        for record in batch.get("records", [])
    ]


def check_fields(records: Any, data: bytes, position: int, header: Any, batch: Any) -> None:
    assert header.magic == batch["magic"]
    assert header.size_bytes == batch["size"]
    assert header.last_offset == batch["last_offset"]
    assert header.crc == batch["crc"]
    if "codec" not in batch:
        return
    assert header.codec.name.lower() == batch["codec"]
    assert header.max_timestamp == batch["max_timestamp"]
    append_time = batch["timestamp_type"] == "LogAppendTime"
    assert header.is_log_append_time == append_time
    if header.magic < 2:
        if "records" in batch:
            assert records.legacy.base_offset(data, position, header) == batch["base_offset"]
        return
    for name, field in (
        ("base_offset", "base_offset"),
        ("attributes", "attributes"),
        ("last_offset_delta", "last_offset_delta"),
        ("base_timestamp", "base_timestamp"),
        ("partition_leader_epoch", "partition_leader_epoch"),
        ("producer_id", "producer_id"),
        ("producer_epoch", "producer_epoch"),
        ("base_sequence", "base_sequence"),
        ("last_sequence", "last_sequence"),
        ("record_count", "count"),
        ("is_transactional", "transactional"),
        ("is_control", "control"),
    ):
        assert getattr(header, name) == batch[field], name


@packages
@pytest.mark.parametrize("index", range(len(vectors())))
def test_kafka_s_batches_are_read_as_kafka_reads_them(records: Any, index: int) -> None:
    vector = vectors()[index]
    data = bytes.fromhex(vector["hex"])
    error_at = vector.get("error_at")
    error = ERRORS[vector["error"]] if error_at else None
    if error_at == "split":
        with pytest.raises(KafkaError) as raised:
            list(records.iterate_headers(data))
        assert raised.value.code == error
        return
    found = list(records.iterate_headers(data))
    assert len(found) == len(vector["batches"])
    assert sum(header.size_bytes for _, header in found) == vector["valid_bytes"]
    for (position, header), batch in zip(found, vector["batches"], strict=True):
        check_fields(records, data, position, header, batch)
        assert records.check_crc(data, position, header) == (error_at != "crc")
        if error_at in ("header", "records"):
            with pytest.raises(KafkaError) as raised:
                records.read_batch(data, position, header)
            assert raised.value.code == error
        elif error_at is None:
            read = [tuple(record) for record in records.read_batch(data, position, header)]
            assert read == wanted_records(batch)


@packages
@pytest.mark.parametrize(
    "index",
    [index for index, vector in enumerate(vectors()) if not vector["case"].startswith("damaged")],
)
def test_kafka_s_batches_are_written_again_byte_for_byte(records: Any, index: int) -> None:
    """Uncompressed ones are the same bytes; compressed ones read the same and say the same."""
    vector = vectors()[index]
    data = bytes.fromhex(vector["hex"])
    for position, header in records.iterate_headers(data):
        if header.magic < 2:
            continue
        read = records.read_batch(data, position, header)
        built = records.build_batch(
            read,
            base_offset=header.base_offset,
            codec=header.codec,
            leader_epoch=header.partition_leader_epoch,
            timestamp_type=int(header.is_log_append_time),
            append_time_ms=header.max_timestamp if header.is_log_append_time else None,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
            delete_horizon_ms=header.delete_horizon_ms,
            last_offset=header.last_offset,
        )
        again = records.parse_header(built)
        if read and not header.is_log_append_time and header.codec == 0:
            assert bytes(built) == data[position : position + header.size_bytes]
        if read:
            assert records.read_batch(built) == read
            same = {"size_bytes": 0, "crc": 0}
            if header.is_log_append_time:  # Kafka keeps the times that the producer had given
                same["base_timestamp"] = 0
            assert again._replace(**same) == header._replace(**same)


@packages
def test_control_records_say_what_kafka_reads_in_them(records: Any) -> None:
    seen = set()
    for vector in vectors():
        data = bytes.fromhex(vector["hex"])
        if "error_at" in vector:
            continue
        for (position, header), batch in zip(
            records.iterate_headers(data), vector["batches"], strict=True
        ):
            if not header.is_control:
                continue
            for record, want in zip(
                records.read_batch(data, position, header), batch.get("records", []), strict=True
            ):
                control = records.control.parse_control(record)
                seen.add(control.type.name)
                assert control.type.name.lower() == want["control_name"].lower()
                assert control.coordinator_epoch == want.get("coordinator_epoch", -1)
                if control.value is not None:
                    assert control.value.encode(0) == record.value
    assert seen == {kind.name for kind in records.control.ControlType} - {"UNKNOWN"}


@packages
def test_markers_are_kafka_s_bytes(records: Any) -> None:
    seen = set()
    for vector in vectors():
        if vector["case"] != "end of transaction":
            continue
        data = bytes.fromhex(vector["hex"])
        header = records.parse_header(data)
        record = records.read_batch(data)[0]
        control = records.control.parse_control(record)
        built = records.control.end_transaction_marker(
            header.producer_id,
            header.producer_epoch,
            control.type == records.control.ControlType.COMMIT,
            control.coordinator_epoch,
            record.timestamp,
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
        )
        assert bytes(built) == data
        seen.add(control.type.name)
    assert seen == {"ABORT", "COMMIT"}
