"""A state that comes back is the one that was kept: what a client can ask has the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing import Broker
from tests.support.wire import WireClient, batch_of, produce_request, produce_values

WAIT_S = 60.0
TOPIC, OTHER = "orders", "keyed"
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
READ_COMMITTED = 1


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(process=request.param) as broker:
        yield broker


def init_producer(client: WireClient, transactional_id: str | None) -> tuple[int, int]:
    request = m.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    while True:
        answer = client.call(request, 4)
        if answer.error_code == 0:
            return answer.producer_id, answer.producer_epoch
        assert answer.error_code in (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
        )
        client.call(m.FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 4)


def append(
    client: WireClient,
    producer: tuple[int, int],
    sequence: int,
    *,
    transactional_id: str | None = None,
) -> tuple[int, int]:
    """The error and the base offset of one record of a producer."""
    batch = batch_of(
        [b"v%d" % sequence],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=transactional_id is not None,
    )
    request = produce_request(TOPIC, {0: batch})
    request.transactional_id = transactional_id
    answer = client.call(request, 9).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def begin_transaction(client: WireClient) -> tuple[int, int]:
    """One record in a transaction that stays open."""
    producer = init_producer(client, "tx")
    shape = m.AddPartitionsToTxnRequest
    topic = shape.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    asked = shape(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[topic],
    )
    added = client.call(asked, 3).results_by_topic_v3_and_below[0].results_by_partition[0]
    assert added.partition_error_code == 0
    assert append(client, producer, 0, transactional_id="tx")[0] == 0
    return producer


def commit_offset(broker: Broker, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    consumer.close()


def asked(broker: Broker, *, epochs: bool) -> dict[str, Any]:
    """What a client gets told. `epochs`: with what changes when a broker starts anew."""
    with WireClient(broker.bootstrap) as client:
        metadata = client.metadata(None)
        found: dict[str, Any] = {
            "cluster": metadata.cluster_id,
            "brokers": [(one.node_id, one.port) for one in metadata.brokers],
            "topics": sorted(
                (
                    topic.name,
                    topic.topic_id,
                    [
                        (part.partition_index, part.leader_id, list(part.isr_nodes))
                        + ((part.leader_epoch,) if epochs else ())
                        for part in topic.partitions
                    ],
                )
                for topic in metadata.topics
            ),
        }
        for name in (TOPIC, OTHER):
            for at in (EARLIEST, LATEST, MAX_TIMESTAMP):
                for isolation in (0, READ_COMMITTED):
                    found[f"offset {name} {at} {isolation}"] = offset_of(
                        client, name, at, isolation, epochs=epochs
                    )
            found[f"configs {name}"] = client.config(name, "retention.ms")
            found[f"producers {name}"] = producers_of(client, name)
        found["groups"] = sorted(
            (one.group_id, one.protocol_type, one.group_state)
            for one in client.call(m.ListGroupsRequest(), 5).groups
        )
        found["transactions"] = [
            (one.transactional_id, one.producer_id, one.transaction_state)
            for one in client.call(m.ListTransactionsRequest(), 1).transaction_states
        ]
        described = client.call(m.DescribeTransactionsRequest(transactional_ids=["tx"]), 0)
        found["transaction"] = repr(described.transaction_states)
    return found


def offset_of(
    client: WireClient, topic: str, at: int, isolation: int, *, epochs: bool
) -> tuple[int, ...]:
    shape = m.ListOffsetsRequest
    partition = shape.ListOffsetsPartition(partition_index=0, timestamp=at)
    request = shape(
        isolation_level=isolation,
        topics=[shape.ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    answer = client.call(request, 7).topics[0].partitions[0]
    assert answer.error_code == 0
    return (answer.offset, answer.timestamp) + ((answer.leader_epoch,) if epochs else ())


def producers_of(client: WireClient, topic: str) -> list[tuple[int, ...]]:
    shape = m.DescribeProducersRequest
    request = shape(topics=[shape.TopicRequest(name=topic, partition_indexes=[0])])
    answer = client.call(request, 0).topics[0].partitions[0]
    assert answer.error_code == 0
    return sorted(
        (
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            one.current_txn_start_offset,
        )
        for one in answer.active_producers
    )


def committed(broker: Broker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(TOPIC, 0)], timeout=WAIT_S)
    consumer.close()
    return int(found[0].offset)


def test_what_a_client_is_told_is_what_it_was_told_when_the_state_was_kept(
    broker: Broker, request: pytest.FixtureRequest
) -> None:
    """Topics and their ids, ends, epochs, configs, groups, offsets, producers, transactions: asked
    before and after everything was changed. In a thread it is still the same broker."""
    epochs = "thread" in request.node.name
    broker.topic(TOPIC).create(config={"retention.ms": 7_000_000})
    broker.topic(OTHER).create(partitions=3, config={"cleanup.policy": "compact"})
    broker.topic(OTHER).send("v", key="k", partition=0)
    with WireClient(broker.bootstrap) as client:
        produce_values(client, TOPIC, 0, [b"a", b"b"])
        idempotent = init_producer(client, None)
        assert append(client, idempotent, 0) == (0, 2)
        transactional = begin_transaction(client)
    commit_offset(broker, "g", 1)
    before = asked(broker, epochs=epochs)
    taken = broker.snapshot()
    for _ in range(2):
        with WireClient(broker.bootstrap) as client:
            assert append(client, idempotent, 1) == (0, 4)
            end = m.EndTxnRequest(
                transactional_id="tx",
                producer_id=transactional[0],
                producer_epoch=transactional[1],
                committed=False,
            )
            assert client.call(end, 3).error_code == 0
            client.create_topic("third")
        commit_offset(broker, "g", 2)
        commit_offset(broker, "other", 2)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.delete_topics([OTHER]).values():
            future.result(WAIT_S)
        broker.restore(taken)
        assert asked(broker, epochs=epochs) == before
        assert committed(broker, "g") == 1
        assert committed(broker, "other") < 0


def test_producers_go_on_where_they_were(broker: Broker) -> None:
    """Of an idempotent one what was written is known as such, and what follows is taken."""
    with WireClient(broker.bootstrap) as client:
        client.create_topic(TOPIC)
        producer = init_producer(client, None)
        assert append(client, producer, 0) == (0, 0)
        taken = broker.snapshot()
        assert append(client, producer, 1) == (0, 1)
    broker.restore(taken)
    with WireClient(broker.bootstrap) as client:
        assert append(client, producer, 0) == (0, 0), "written before"
        code, _ = append(client, producer, 2)
        assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert append(client, producer, 1) == (0, 1)


def test_a_broker_of_a_thread_goes_on_as_the_same_one_and_reads_no_log_anew() -> None:
    with Broker() as broker:
        topic = broker.topic(TOPIC)
        topic.send_all(["a"] * 100)
        taken = broker.snapshot()
        topic.send("b")
        broker.restore(taken)
        assert "no clean shutdown was noted" not in broker.log_text()
        assert topic.end_offsets() == {0: 100}
        topic.send("c")
        broker.kill()
        broker.start()
        assert "no clean shutdown was noted" in broker.log_text()
        assert topic.end_offsets() == {0: 101}
        epochs = broker.snapshot()
        with broker.fork() as other:
            assert other.topic(TOPIC).end_offsets() == {0: 101}
        broker.restore(epochs)
        assert topic.end_offsets() == {0: 101}
