"""Schemas are read from whichever broker leads `_schemas`; without it nothing passes unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("avro")

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.schemas.registry.json_values import written
from kwire.schemas.registry.records import schema_key
from kwire.testing.cluster import Cluster, wait_for
from tests.support.wire import WireClient

LEADS_SCHEMAS, LEADS_TOPIC = 2, 1
WAIT_S = 60.0


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("nodes")) as cluster:
        cluster.start()
        yield cluster


def create(client: WireClient, name: str, broker: int, configs: dict[str, str]) -> None:
    shape = m.CreateTopicsRequest
    settings = [shape.CreatableTopicConfig(name=key, value=text) for key, text in configs.items()]
    place = shape.CreatableReplicaAssignment(partition_index=0, broker_ids=[broker])
    topic = shape.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[place], configs=settings
    )
    told = client.call(shape(topics=[topic], timeout_ms=30_000), 7).topics[0]
    assert told.error_code == 0, told.error_message


def produced(client: WireClient, topic: str, record: Record) -> Any:
    shape = m.ProduceRequest
    data = shape.PartitionProduceData(index=0, records=build_batch([record]))
    topics = [shape.TopicProduceData(name=topic, partition_data=[data])]
    request = shape(acks=-1, timeout_ms=30_000, topic_data=topics)
    return client.call(request, 9).responses[0].partition_responses[0].error_code


def takes(client: WireClient, topic: str, record: Record) -> bool:
    return bool(produced(client, topic, record) == 0)


def registered(client: WireClient, schema_id: int) -> None:
    """As a registry writes it."""
    subject = "orders-value"
    value = written(
        {
            "subject": subject,
            "version": schema_id,
            "id": schema_id,
            "schema": f'{{"type":"fixed","name":"F","size":{schema_id}}}',
            "deleted": False,
        }
    )
    record = Record(key=schema_key(subject, schema_id), value=value)
    wait_for(lambda: takes(client, "_schemas", record), WAIT_S)


def of_schema(schema_id: int) -> Record:
    return Record(value=b"\0" + schema_id.to_bytes(4, "big") + bytes(schema_id))


def test_a_leader_of_another_topic_reads_schemas_from_theirs(nodes: Cluster) -> None:
    with (
        WireClient(nodes[LEADS_TOPIC].bootstrap) as client,
        WireClient(nodes[LEADS_SCHEMAS].bootstrap) as schemas,
    ):
        asks = {
            "confluent.value.schema.validation": "true",
            "kwire.schema.validation.deep": "true",
        }
        create(client, "orders", LEADS_TOPIC, asks)
        wait_for(lambda: takes(client, "orders", Record(value=None)), WAIT_S)
        # There is no topic of schemas: nothing is registered.
        assert produced(client, "orders", of_schema(1)) == ErrorCode.INVALID_RECORD
        create(schemas, "_schemas", LEADS_SCHEMAS, {"cleanup.policy": "compact"})
        for schema_id in range(1, 60):
            registered(schemas, schema_id)
        # The metadata of `_schemas` may reach this node a moment later.
        wait_for(lambda: takes(client, "orders", of_schema(59)), WAIT_S)
        assert produced(client, "orders", of_schema(60)) == ErrorCode.INVALID_RECORD
        registered(schemas, 60)
        assert produced(client, "orders", of_schema(60)) == 0

        nodes[LEADS_SCHEMAS].kill()
        assert produced(client, "orders", of_schema(61)) == ErrorCode.REQUEST_TIMED_OUT
        assert produced(client, "orders", of_schema(1)) in (0, ErrorCode.REQUEST_TIMED_OUT)
        assert produced(client, "orders", Record(value=None)) == 0
        nodes[LEADS_SCHEMAS].start()
        nodes[LEADS_SCHEMAS].wait_ready()
        with WireClient(nodes[LEADS_SCHEMAS].bootstrap) as again:
            registered(again, 61)
        wait_for(lambda: takes(client, "orders", of_schema(61)), WAIT_S)
