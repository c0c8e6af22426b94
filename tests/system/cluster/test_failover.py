"""Three kwire processes: what was acknowledged survives kills and restarts, and writing goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Cluster, wait_for
from tests.support.history import QUICK, Writer, check
from tests.support.topics import create_topics

pytest.importorskip("confluent_kafka")

NODES = (1, 2, 3)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, settings={"min.insync.replicas": 2}) as cluster:
        cluster.start()
        yield cluster


def admin(cluster: Cluster) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": cluster.bootstrap, **QUICK})


def create(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    create_topics(admin(cluster), {topic: partitions})


def partition(cluster: Cluster, topic: str, index: int = 0) -> Any:
    known = admin(cluster).list_topics(topic, timeout=30).topics[topic].partitions
    return known[index]


def leader(cluster: Cluster, topic: str, index: int = 0) -> int:
    """The leader's id, once there is one."""
    return int(wait_for(lambda: max(partition(cluster, topic, index).leader, 0), "a leader"))


def wait_in_sync(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    wait_for(
        lambda: all(len(partition(cluster, topic, i).isrs) == 3 for i in range(partitions)),
        f"all replicas of {topic} in sync",
    )


def test_nothing_acknowledged_is_lost_when_leaders_and_controllers_are_killed(
    cluster: Cluster,
) -> None:
    create(cluster, "t", 3)
    with Writer(cluster.bootstrap, "t", 3) as writer:
        writer.wait_acknowledged()
        for victim in NODES:  # one of them is the active controller; each leads a partition
            cluster[victim].kill()
            writer.wait_acknowledged()
            cluster[victim].start()
            cluster[victim].wait_ready()
            wait_in_sync(cluster, "t", 3)
            writer.wait_acknowledged()
    assert not writer.failed, "idempotent retries last until the next leader"
    check(cluster.bootstrap, "t", writer)


def test_a_rolling_restart_goes_unnoticed(cluster: Cluster) -> None:
    create(cluster, "t", 3)
    with Writer(cluster.bootstrap, "t", 3) as writer:
        writer.wait_acknowledged()
        for node_id in NODES:
            cluster[node_id].stop()
            assert "stopping all the same" not in cluster[node_id].log_text(), "leaders moved first"
            writer.wait_acknowledged()
            cluster[node_id].start()
            cluster[node_id].wait_ready()
            wait_in_sync(cluster, "t", 3)
    assert not writer.failed
    check(cluster.bootstrap, "t", writer)


def test_all_nodes_killed_at_once_come_back_with_everything(cluster: Cluster) -> None:
    create(cluster, "t")
    with Writer(cluster.bootstrap, "t") as writer:
        writer.wait_acknowledged()
        for node in cluster:
            node.kill()
        for node in cluster:
            node.start()
        for node in cluster:
            node.wait_ready()
        writer.wait_acknowledged()
    check(cluster.bootstrap, "t", writer)


def committed(consumer: Any, partition: Any) -> int:
    """The committed offset, once the group's coordinator has settled: librdkafka hands on
    NOT_COORDINATOR where the leadership moves back to a restarted node at that moment."""
    from confluent_kafka import KafkaError, KafkaException

    passing = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)

    def ask() -> Any:
        try:
            return consumer.committed([partition], 30)
        except KafkaException as error:
            if error.args[0].code() in passing:
                return None
            raise

    return int(wait_for(ask, "the committed offset")[0].offset)


def test_groups_and_transactions_outlive_their_coordinators(cluster: Cluster) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    create(cluster, "t")
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "x",
            "transaction.timeout.ms": 60_000,
            **QUICK,
        }
    )
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "g", **QUICK}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    producer.init_transactions(60)
    for number, victim in enumerate(NODES):
        producer.begin_transaction()
        producer.produce("t", b"%d" % number, partition=0)
        cluster[victim].kill()
        producer.send_offsets_to_transaction(
            [TopicPartition("t", 0, number)], consumer.consumer_group_metadata(), 60
        )
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
        cluster[victim].start()
        cluster[victim].wait_ready()
        wait_in_sync(cluster, "t")
    assert committed(consumer, TopicPartition("t", 0)) == 2
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []

    def read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) == 2

    wait_for(read, "the committed transactions")
    assert values == [b"0", b"2"]
    consumer.close()
