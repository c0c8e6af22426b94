"""Topics that ask for schemas: what is refused at publish, before anything is kept."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")
pytest.importorskip("confluent_kafka.schema_registry")

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.header import Codec
from kwire.testing.cluster import Broker
from tests.support.registry_client import RegistryClient
from tests.support.wire import WireClient
from tests.system.test_http import port_of

USER = '{"type":"record","name":"shop.User","fields":[{"name":"name","type":"string"}]}'
STRATEGY = "confluent.value.subject.name.strategy"
SUBJECTS = "io.confluent.kafka.serializers.subject."
VALUE = {"confluent.value.schema.validation": "true"}
DEEP = {**VALUE, "kwire.schema.validation.deep": "true"}


def _keep_error(outcomes: list[Any], error: Any, _: object) -> None:
    outcomes.append(error)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as one:
        yield one


@pytest.fixture(scope="module")
def registry(broker: Broker) -> RegistryClient:
    return RegistryClient(f"127.0.0.1:{port_of(broker)}")


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as one:
        yield one


def new_topic(client: WireClient, configs: dict[str, str]) -> str:
    name = f"t-{uuid.uuid4()}"
    shape = m.CreateTopicsRequest
    settings = [shape.CreatableTopicConfig(name=key, value=text) for key, text in configs.items()]
    topic = shape.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, configs=settings
    )
    told = client.call(shape(topics=[topic], timeout_ms=30_000), 7).topics[0]
    assert told.error_code == 0, told.error_message
    client.topic(name)
    return name


def produced(
    client: WireClient, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE
) -> Any:
    """What a Produce of one batch is answered for its partition."""
    shape = m.ProduceRequest
    data = shape.PartitionProduceData(index=0, records=build_batch(list(records), codec=codec))
    request = shape(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[shape.TopicProduceData(name=topic, partition_data=[data])],
    )
    return client.call(request, 9).responses[0].partition_responses[0]


def registered(registry: RegistryClient, subject: str, schema: str, **fields: str) -> int:
    told = registry.register(subject, schema, **fields)
    assert told.status == 200, told.body
    assert isinstance(told.body, dict)
    return int(str(told.body["id"]))


def head(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big")


def faults(answer: Any) -> dict[int, str]:
    assert answer.error_code == ErrorCode.INVALID_RECORD, answer
    return {one.batch_index: one.batch_index_error_message for one in answer.record_errors}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_records_without_their_schema_are_named_and_nothing_is_kept(
    client: WireClient, registry: RegistryClient, codec: Codec
) -> None:
    topic = new_topic(client, VALUE)
    good = head(registered(registry, f"{topic}-value", USER))
    other = head(registered(registry, f"{topic}-elsewhere", '"int"'))
    records = [
        Record(value=good + b"\x06Ada"),
        Record(value=b"plain text"),
        Record(value=None),
        Record(value=head(99_999)),
        Record(value=other + b"\x02"),
        Record(value=b""),
        Record(key=b"any key", value=good),
    ]
    told = faults(produced(client, topic, records, codec))
    assert list(told) == [1, 3, 4, 5]
    assert "names no schema" in told[1]
    assert told[3] == "value: id 99999 is not registered"
    assert told[4].endswith(f"is not registered under the subject {topic}-value")
    kept = produced(client, topic, [records[0], records[2], records[6]], codec)
    assert (kept.error_code, kept.base_offset) == (0, 0)


def test_a_schema_registered_a_moment_ago_is_found_and_a_deleted_one_is_not(
    client: WireClient, registry: RegistryClient
) -> None:
    topic = new_topic(client, VALUE)
    for number in range(5):
        schema = f'{{"type":"fixed","name":"F","size":{number}}}'
        registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "NONE"})
        schema_id = registered(registry, f"{topic}-value", schema)
        assert produced(client, topic, [Record(value=head(schema_id))]).error_code == 0
    late = new_topic(client, VALUE)
    schema_id = registered(registry, f"{late}-value", '"long"')
    assert registry.ask("DELETE", f"/subjects/{late}-value").status == 200
    assert list(faults(produced(client, late, [Record(value=head(schema_id) + b"\x02")]))) == [0]


def test_the_schemas_of_a_registry_with_a_topic_of_its_own() -> None:
    options = {"http.listeners": "http://127.0.0.1:0", "http.registry.topic": "own-schemas"}
    with Broker(options=options) as own, WireClient(own.bootstrap) as client:
        registry = RegistryClient(f"127.0.0.1:{port_of(own)}")
        topic = new_topic(client, VALUE)
        schema_id = registered(registry, f"{topic}-value", '"long"')
        assert produced(client, topic, [Record(value=head(schema_id) + b"\x02")]).error_code == 0
        assert list(faults(produced(client, topic, [Record(value=head(9) + b"\x02")]))) == [0]


def test_a_guid_in_a_header_names_a_schema(client: WireClient, registry: RegistryClient) -> None:
    topic = new_topic(client, {"confluent.key.schema.validation": "true"})
    told = registry.register(f"{topic}-key", USER).body
    assert isinstance(told, dict)
    guid = b"\x01" + uuid.UUID(str(told["guid"])).bytes
    name = "__key_schema_id"
    wrong = faults(
        produced(
            client,
            topic,
            [
                Record(key=b"\x06Ada", headers=[(name, guid)]),
                Record(key=b"\x06Ada", headers=[(name, b"\x01" + bytes(16))]),
                Record(key=b"\x06Ada", headers=[("__value_schema_id", guid)]),
                Record(key=b"\x06Ada", headers=[(name, None)]),
                Record(key=None, value=b"any value"),
                Record(key=b"\x06Ada", headers=[(name, guid), (name, guid)]),
                # Confluent's client for Java goes by the last one, that for Python by the first.
                Record(key=b"\x06Ada", headers=[(name, guid), (name, b"\x01" + bytes(16))]),
            ],
        )
    )
    assert list(wrong) == [1, 2, 3, 6]
    assert "GUID 00000000-0000-0000-0000-000000000000 is not registered" in wrong[1]
    good = [Record(key=b"\x06Ada", headers=[(name, guid)])]
    assert produced(client, topic, good).error_code == 0


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("RecordNameStrategy", "shop.User"), ("TopicRecordNameStrategy", "{topic}-shop.User")],
)
def test_subjects_by_the_names_of_records(
    client: WireClient, registry: RegistryClient, strategy: str, subject: str
) -> None:
    topic = new_topic(client, {**VALUE, STRATEGY: SUBJECTS + strategy})
    schema_id = registered(registry, subject.format(topic=topic), USER)
    assert produced(client, topic, [Record(value=head(schema_id) + b"\x06Ada")]).error_code == 0
    elsewhere = registered(registry, f"{topic}-value", USER.replace("User", "Other"))
    told = faults(produced(client, topic, [Record(value=head(elsewhere) + b"\x06Ada")]))
    assert "shop.Other" in told[0]


@pytest.mark.parametrize(
    ("schema_type", "schema", "good", "bad"),
    [
        ("AVRO", USER, b"\x06Ada", [b"\x06Ad", b"\x06Ada\0", b"\x06A\xffa", b"\x07Ada"]),
        (
            "JSON",
            '{"type":"object","required":["a"],"properties":{"a":{"pattern":"^x+$"}}}',
            b'{"a": "xx"}',
            [b"{}", b"{", b'{"a": "y"}', b"[" * 100_000],
        ),
        (
            "PROTOBUF",
            'syntax = "proto3"; message M { int32 a = 1; message N { string b = 1; } }',
            b"\x04\0\0\x0a\x01x",
            [b"\x04\0\x02\x08\x01", b"", b"\x00\x0a", b"\x02\x02\x08\x01", b"\xff\xff\xff\xff\xff"],
        ),
    ],
)
def test_bytes_that_do_not_decode(
    client: WireClient,
    registry: RegistryClient,
    schema_type: str,
    schema: str,
    good: bytes,
    bad: list[bytes],
) -> None:
    topic = new_topic(client, DEEP)
    first = head(registered(registry, f"{topic}-value", schema, schemaType=schema_type))
    told = faults(produced(client, topic, [Record(value=first + data) for data in (good, *bad)]))
    assert list(told) == list(range(1, len(bad) + 1))
    assert all("does not decode" in why for why in told.values())
    assert produced(client, topic, [Record(value=first + good)] * 1000).error_code == 0


def test_what_confluents_serializers_write_is_taken(
    broker: Broker, client: WireClient, registry: RegistryClient
) -> None:
    """Avro, JSON and Protobuf, each with the schema that its serializer registers."""
    with SchemaRegistryClient({"url": registry.url}) as schemas:
        made: list[tuple[Any, Any]] = [
            (AvroSerializer(schemas, USER), {"name": "Ada"}),
            (
                JSONSerializer('{"type":"object","title":"U"}', schemas, lambda one, _: one),
                {"name": "Ada"},
            ),
            (
                ProtobufSerializer(
                    timestamp_pb2.Timestamp, schemas, {"use.deprecated.format": False}
                ),
                timestamp_pb2.Timestamp(seconds=5),
            ),
        ]
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for serializer, value in made:
            topic = new_topic(client, DEEP)
            context = SerializationContext(topic, MessageField.VALUE)
            outcomes: list[Any] = []
            told = partial(_keep_error, outcomes)
            for data in (serializer(value, context), b"plain", None):
                producer.produce(topic, data, on_delivery=told)
                producer.flush(30)
            assert [error and error.code() for error in outcomes] == [
                None,
                ErrorCode.INVALID_RECORD,
                None,
            ]


def test_a_topic_asks_from_the_moment_its_config_is_set(
    client: WireClient, registry: RegistryClient
) -> None:
    topic = new_topic(client, {})
    assert produced(client, topic, [Record(value=b"plain")]).error_code == 0
    shape = m.IncrementalAlterConfigsRequest

    def alter(operation: int) -> None:
        config = shape.AlterableConfig(
            name="confluent.value.schema.validation", config_operation=operation, value="true"
        )
        resource = shape.AlterConfigsResource(
            resource_type=2, resource_name=topic, configs=[config]
        )
        assert client.call(shape(resources=[resource]), 1).responses[0].error_code == 0

    alter(0)
    assert list(faults(produced(client, topic, [Record(value=b"plain")]))) == [0]
    alter(1)
    assert produced(client, topic, [Record(value=b"plain")]).error_code == 0


def test_a_strategy_that_is_none_is_refused(client: WireClient) -> None:
    shape = m.CreateTopicsRequest
    config = shape.CreatableTopicConfig(name=STRATEGY, value="com.example.Mine")
    topic = shape.CreatableTopic(
        name="wrong", num_partitions=1, replication_factor=1, configs=[config]
    )
    told = client.call(shape(topics=[topic], timeout_ms=30_000), 7).topics[0]
    assert told.error_code == ErrorCode.INVALID_CONFIG
    assert "TopicRecordNameStrategy" in told.error_message


def test_what_makes_a_check_explode_is_an_answer(
    client: WireClient, registry: RegistryClient
) -> None:
    """Each held up the broker for minutes, or ended the produce with UNKNOWN_SERVER_ERROR."""
    cases: list[tuple[object, bytes, str | None]] = [
        (
            {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
            json.dumps({"a" * 5000 + "b": 1}).encode(),
            "is not allowed",
        ),
        (
            {"items": {"allOf": [{"type": "integer"}] * 1000}},
            b"[" + b"1," * 3000 + b"1]",
            "too long",
        ),
        ({"multipleOf": 0.03}, b"1" + b"0" * 400, "is not a multiple of 0.03"),
        ({"pattern": "a"}, rb'"\ud800"', "cannot be checked"),
        ({"pattern": "^[a-z]{1,900}$"}, b'"abc"', None),
    ]
    for schema, document, why in cases:
        topic = new_topic(client, DEEP)
        known = head(registered(registry, f"{topic}-value", json.dumps(schema), schemaType="JSON"))
        answer = produced(client, topic, [Record(value=known + document)])
        if why is None:
            assert answer.error_code == 0
        else:
            assert why in faults(answer)[0]
