"""Messages as JSON and back; nothing secret in them."""

from __future__ import annotations

import json

import pytest

from kwire.protocol import messages as m
from kwire.protocol import records, schema
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.records import Record
from kwire.protocol.structs import Message, Struct
from kwire.trace.rendering import Unsendable, as_json, from_json
from kwire.trace.secrets import HIDDEN, HIDDEN_FIELDS

SECRET = b"a-secret-of-this-test"


def filled(kind: type[Message], version: int) -> Message:
    """A message with a value in every field of a version, so that nothing is a default."""
    made = kind()
    _fill(kind, made, kind.SCHEMA.root, version)
    return made


def _fill(kind: type[Message], made: Struct, definition: schema.Struct, version: int) -> None:
    for field in definition.fields:
        if schema.within(version, field.versions):
            value = _value(kind, field, version)
            setattr(made, field.name, [value] if field.is_array else value)


def _value(kind: type[Message], field: schema.Field, version: int) -> object:
    if field.struct is not None:
        inner = kind.STRUCTS[field.struct.name]()
        _fill(kind, inner, field.struct, version)
        return inner
    if field.type == "records":
        return bytes(records.build_batch([Record(key=b"k", value=b"v", timestamp=7)]))
    if field.type == "bytes":
        return SECRET if field.name in HIDDEN_FIELDS else b"\xff\x00bytes"
    if field.type in ("bool", "uuid", "string", "float64"):
        return {"bool": True, "uuid": bytes(range(16)), "string": "text", "float64": 1.5}[
            field.type
        ]
    return 1


@pytest.mark.parametrize("api", API_KEYS)
def test_every_request_is_read_back_as_it_was(api: int) -> None:
    kind: type[Message] = m.request_class(api)
    for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1):
        message = filled(kind, version)
        shown = json.loads(json.dumps(as_json(message, version, 100)))
        if HIDDEN in json.dumps(shown):
            with pytest.raises(Unsendable):
                from_json(kind, version, shown)
            continue
        assert from_json(kind, version, shown).encode(version) == message.encode(version)


@pytest.mark.parametrize("api", API_KEYS)
def test_no_secret_is_in_what_is_written(api: int) -> None:
    from base64 import b64encode

    for kind in (m.request_class(api), m.response_class(api)):
        for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1):
            text = json.dumps(as_json(filled(kind, version), version, 100))
            assert SECRET.decode() not in text
            assert b64encode(SECRET).decode()[:20] not in text


def test_the_messages_with_secrets_are_known() -> None:
    """Every field of bytes is hidden or known to hold nothing secret."""
    open_fields = {"metadata", "assignment", "member_metadata", "member_assignment"}
    open_fields |= {"client_host_address"}
    for info in API_KEYS.values():
        for kind in (m.request_class(info.key), m.response_class(info.key)):
            for struct in (kind.SCHEMA.root, *kind.SCHEMA.structs.values()):
                for field in struct.fields:
                    if field.type == "bytes":
                        assert field.name in HIDDEN_FIELDS | open_fields, (info.name, field.name)


def configs(*entries: tuple[str, str]) -> m.IncrementalAlterConfigsRequest:
    kind = m.IncrementalAlterConfigsRequest
    return kind(
        resources=[
            kind.AlterConfigsResource(
                resource_type=4,
                resource_name="1",
                configs=[kind.AlterableConfig(name=name, value=value) for name, value in entries],
            )
        ]
    )


def test_values_of_configs_are_shown_where_the_config_is_known_to_be_public() -> None:
    message = configs(
        ("log.retention.ms", "7"),
        ("ssl.keystore.password", "pw1"),
        ("listener.name.x.scram-sha-256.sasl.jaas.config", "pw2"),
        ("nobody.knows.this", "pw3"),
    )
    text = json.dumps(as_json(message, 1))
    assert '"7"' in text
    assert "pw" not in text
    assert text.count(HIDDEN) == 3


def test_a_described_config_that_the_broker_calls_sensitive_is_hidden() -> None:
    kind = m.DescribeConfigsResponse
    entry = kind.DescribeConfigsResourceResult(
        name="log.retention.ms", value="7", is_sensitive=True
    )
    message = kind(results=[kind.DescribeConfigsResult(configs=[entry])])
    assert '"7"' not in json.dumps(as_json(message, 4))


def produce(batch: bytes) -> m.ProduceRequest:
    kind = m.ProduceRequest
    partition = kind.PartitionProduceData(index=0, records=batch)
    return kind(topic_data=[kind.TopicProduceData(name="orders", partition_data=[partition])])


def batch_of(message: m.ProduceRequest) -> records.BatchHeader:
    data = message.topic_data[0].partition_data[0].records
    assert isinstance(data, bytes)
    return records.parse_header(data)


def test_keys_and_values_are_only_there_when_asked_for() -> None:
    batch = records.build_batch([Record(key=b"the-key", value=b"the-value", timestamp=1)])
    message = produce(bytes(batch))
    assert "the-" not in json.dumps(as_json(message, 9))
    assert "the-value" in json.dumps(as_json(message, 9, 100))
    cut = json.dumps(as_json(message, 9, 3))
    assert "the-" not in cut
    assert '"cut": "the", "bytes": 9' in cut


def test_batches_whose_records_were_not_kept_are_built_anew_of_the_same_shape() -> None:
    batch = records.build_batch(
        [Record(value=b"x" * 100, timestamp=5)] * 3,
        codec=records.Codec.ZSTD,
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        transactional=True,
    )
    message = produce(bytes(batch))
    again = from_json(m.ProduceRequest, 9, as_json(message, 9))
    assert isinstance(again, m.ProduceRequest)
    header, before = batch_of(again), batch_of(message)
    assert header.is_transactional
    assert header.codec == records.Codec.ZSTD
    fields = ("record_count", "producer_id", "producer_epoch", "base_sequence", "max_timestamp")
    for name in fields:
        assert getattr(header, name) == getattr(before, name)


def test_more_batches_and_records_than_are_shown_are_counted() -> None:
    batch = bytes(records.build_batch([Record(value=b"v")] * 3))
    shown = as_json(produce(batch * 150), 9, 10)
    text = json.dumps(shown)
    assert "50 batches" in text
    assert text.count('"value"') == 100
    with pytest.raises(Unsendable, match="50 batches"):
        from_json(m.ProduceRequest, 9, shown)


@pytest.mark.parametrize(
    "records_shown",
    [
        {"batches": [{"count": 10**12, "bytes": 10**13}]},
        {"batches": [{"count": 0, "bytes": 70}]},
        {"batches": [{"count": 1, "bytes": 70, "codec": "none", "magic": 1}]},
        {"batches": [{"count": 1, "bytes": 70, "codec": "rot13"}]},
        "no object",
    ],
)
def test_records_that_cannot_be_are_refused(records_shown: object) -> None:
    shown = as_json(produce(b""), 9)
    shown["topic_data"] = [
        {"name": "t", "partition_data": [{"index": 0, "records": records_shown}]}  # type: ignore[dict-item]
    ]
    with pytest.raises(Unsendable):
        from_json(m.ProduceRequest, 9, shown)
