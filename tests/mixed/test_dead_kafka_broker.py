"""Processes of both kinds die, with sessions that never end: kwire's controller need not wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Cluster, wait_for
from tests.support.kafka_node import KafkaNode
from tests.support.topics import create_topics

pytest.importorskip("confluent_kafka")

SETTINGS = {
    "broker.session.timeout.ms": 600_000,
    "broker.heartbeat.interval.ms": 500,
    "controller.quorum.fetch.timeout.ms": 4_000,
    "controller.quorum.election.timeout.ms": 1_000,
}


def produced(cluster: Cluster, partitions: int) -> list[Any]:
    from confluent_kafka import Producer

    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for index in range(partitions):
        producer.produce(
            "t", b"x", partition=index, on_delivery=lambda error, _: error and failed.append(error)
        )
    assert producer.flush(90) == 0
    return failed


def test_a_kafka_broker_that_is_killed_is_fenced_at_once_and_comes_back(tmp_path: Path) -> None:
    kinds = {4: KafkaNode}
    with Cluster(tmp_path, combined=(1,), brokers=(4,), kinds=kinds, settings=SETTINGS) as cluster:
        from confluent_kafka.admin import AdminClient

        cluster.start()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        create_topics(admin, {"t": 2}, replicas=2)
        wait_for(lambda: cluster.in_sync(["t"]), "everything in sync")
        told = "the listener of broker 4 accepts"
        wait_for(lambda: told in cluster[1].log_text(), "its listener was seen")
        cluster[4].kill()
        assert not produced(cluster, 2)
        assert "broker 4 is gone: it refuses connections" in cluster[1].log_text()
        cluster[4].start()
        cluster[4].wait_ready()
        wait_for(lambda: cluster.in_sync(["t"]), "everything in sync again")
