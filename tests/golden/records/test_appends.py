"""What Kafka 4.4's log says to 6,500 good and damaged batches, and what it stores of the good ones.

Each was given to Kafka's own produce checks and to the leader's append of a log with the topic
configs named, at leader epoch 7 and log end 1000 (`version` is Produce's; `origin` coordinator
skips the produce checks). Where kwire answers otherwise, it is by one of three rules:

1. Kafka's UNKNOWN_SERVER_ERROR (it throws what it did not expect) is an honest refusal here.
2. What Kafka stores but cannot read itself (`readable` false: a record length in a compressed batch
   that does not fit its fields, which would stop every consumer) is INVALID_RECORD here.
3. Such a batch is INVALID_RECORD as a whole before its single records are judged.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.kernels import record_packages
from tests.support.vectors import rows

GROUPS = 20
REFUSALS = {
    "INVALID_RECORD",
    "INVALID_TIMESTAMP",
    "RECORD_LIST_TOO_LARGE",
    "UNSUPPORTED_COMPRESSION_TYPE",
}


def rules_of(records: Any, config: dict[str, str]) -> Any:
    codec = config.get("compression.type", "producer")
    after = int(config.get("message.timestamp.after.max.ms", 3_600_000))
    rules = records.AppendRules(
        timestamp_type=int(config.get("message.timestamp.type") == "LogAppendTime"),
        timestamp_after_max_ms=after,
        key_required=config.get("cleanup.policy") == "compact",
        codec=None if codec == "producer" else records.CODEC_NAMES[codec],
    )
    if "message.timestamp.before.max.ms" in config:
        rules = rules._replace(
            timestamp_before_max_ms=int(config["message.timestamp.before.max.ms"])
        )
    if "max.decompressed.message.bytes" in config:
        rules = rules._replace(record_bytes_max=int(config["max.decompressed.message.bytes"]))
    return rules


def append(records: Any, row: dict[str, Any], data: bytearray) -> Any:
    """What a broker does with the records of a produce request for one partition."""
    client = row["origin"] == "client"
    header = records.check_produced(data, row["version"]) if client else records.parse_header(data)
    records.check_batch(
        data,
        0,
        header,
        max_message_bytes=int(row["config"].get("max.message.bytes", 1_048_588)),
        client=client,
    )
    return records.validate_for_append(
        data,
        0,
        header,
        rules_of(records, row["config"]),
        client=client,
        wall_ms=row["wall_ms"],
        base_offset=1000,
        leader_epoch=7,
    )


def verdict(records: Any, row: dict[str, Any]) -> tuple[str, list[int], bytes]:
    """(code, indexes of the records at fault, bytes to be stored)."""
    data = bytearray.fromhex(row["hex"])
    try:
        batch = append(records, row, data)
    except KafkaError as error:
        assert data.hex() == row["hex"], "a refused batch was changed"
        faults = [fault.batch_index for fault in getattr(error, "record_errors", ())]
        return ErrorCode(error.code).name, faults, b""
    end = batch.position + batch.header.size_bytes
    return "NONE", [], bytes(batch.buffer[batch.position : end])


def same_batch(records: Any, sent: bytes, ours: bytes, kafka_s: bytes) -> bool:
    """Byte for byte when it was stored as sent; read the same when it was compressed anew."""
    if ours == kafka_s:
        return True
    left, right = (records.parse_header(batch) for batch in (ours, kafka_s))
    assert left.codec != records.parse_header(sent).codec, "what keeps its codec keeps its bytes"
    assert records.check_crc(ours, 0, left)
    return bool(
        left._replace(crc=0, size_bytes=0) == right._replace(crc=0, size_bytes=0)
        and as_kafka_s(records.read_batch(ours)) == as_kafka_s(records.read_batch(kafka_s))
    )


def as_kafka_s(found: list[Any]) -> list[Any]:
    """Header keys that are no UTF-8 lose what they were when Kafka compresses a batch anew."""

    def text(name: str | bytes) -> str:
        return name if isinstance(name, str) else name.decode(errors="replace")

    return [record._replace(headers=[(text(n), v) for n, v in record.headers]) for record in found]


def check(records: Any, row: dict[str, Any]) -> None:
    """Assert that kwire's verdict on the row's batch is Kafka's, or differs by a rule."""
    code, faults, stored = verdict(records, row)
    if row["code"] == "UNKNOWN_SERVER_ERROR":
        assert code in REFUSALS or stored, row
    elif row["code"] == "NONE" and not row["readable"]:
        assert (code, faults) == ("INVALID_RECORD", []), row
    elif row["record_errors"] and code == "INVALID_RECORD" and not faults:
        with pytest.raises(KafkaError):
            records.read_batch(bytes.fromhex(row["hex"]))
    else:
        assert (code, faults) == (row["code"], row["record_errors"]), row
        if code == "NONE":
            sent, wanted = bytes.fromhex(row["hex"]), bytes.fromhex(row["stored"])
            assert same_batch(records, sent, stored, wanted), row


@pytest.mark.parametrize("records", record_packages())
@pytest.mark.parametrize("group", range(GROUPS))
def test_the_leader_judges_batches_as_kafka_does(records: Any, group: int) -> None:
    for row in rows("appends")[group::GROUPS]:
        check(records, row)


def test_most_verdicts_are_kafka_s_own() -> None:
    records = record_packages()[0].values[0]
    sample = rows("appends")[::7]
    same = sum(verdict(records, row)[:2] == (row["code"], row["record_errors"]) for row in sample)
    assert same > 0.75 * len(sample)


def test_the_vectors_are_worth_something() -> None:
    codes = {row["code"] for row in rows("appends")}
    assert {"NONE", "CORRUPT_MESSAGE", "INVALID_RECORD", "INVALID_TIMESTAMP"} <= codes
    assert {"MESSAGE_TOO_LARGE", "UNSUPPORTED_COMPRESSION_TYPE"} <= codes
