"""kill -9 of real processes, with time-outs so long that only what their machine says counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.topics import create_topics
from tests.support.wire import WireClient

pytest.importorskip("confluent_kafka")

SETTINGS = {
    "broker.session.timeout.ms": 600_000,
    "broker.heartbeat.interval.ms": 2_000,
    "controller.quorum.fetch.timeout.ms": 600_000,
    "controller.quorum.election.timeout.ms": 1_000,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, settings=SETTINGS) as cluster:
        cluster.start()
        yield cluster


def create(cluster: Cluster, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient

    create_topics(AdminClient({"bootstrap.servers": cluster.bootstrap}), {"t": partitions})
    wait_for(lambda: cluster.in_sync(["t"]), "everything in sync")


def controller(cluster: Cluster, asked: int) -> int:
    quorum = m.DescribeQuorumRequest
    request = quorum(
        topics=[
            quorum.TopicData(
                topic_name="__cluster_metadata",
                partitions=[quorum.PartitionData(partition_index=0)],
            )
        ]
    )
    node = cluster[asked]
    with WireClient(f"{node.host}:{node.port}") as client:
        return int(client.call(request, 1).topics[0].partitions[0].leader_id)


def produced(cluster: Cluster, partitions: int) -> list[Any]:
    """One record to each partition, acknowledged by all that are in sync; no error is told."""
    from confluent_kafka import Producer

    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for index in range(partitions):
        producer.produce(
            "t", b"x", partition=index, on_delivery=lambda error, _: error and failed.append(error)
        )
    assert producer.flush(60) == 0
    return failed


def is_known(cluster: Cluster, broker_id: int) -> bool:
    """Whether every other controller has seen the broker's listener accept."""
    return all(
        f"the listener of broker {broker_id} accepts" in node.log_text()
        for node in cluster.controllers
        if node.node_id != broker_id
    )


@pytest.mark.parametrize("kind", ["controller", "another"])
def test_writing_goes_on_after_a_kill(cluster: Cluster, kind: str) -> None:
    """Each node leads one of the partitions, and is in sync for all of them."""
    create(cluster, 3)
    active = controller(cluster, 1)
    victim = active if kind == "controller" else next(i for i in (1, 2, 3) if i != active)
    wait_for(lambda: is_known(cluster, victim), "its listener was seen by the other controllers")
    cluster[victim].kill()
    assert not produced(cluster, 3)
    told = f"broker {victim} is gone: it refuses connections; it is fenced"
    assert sum(told in node.log_text() for node in cluster) == 1
    cluster[victim].start()
    cluster[victim].wait_ready()
    wait_for(lambda: cluster.in_sync(["t"]), "everything in sync again")


def test_the_controller_and_a_broker_die_at_once(tmp_path: Path) -> None:
    """The next controller has never heard of the broker: it finds those that send nothing."""
    with Cluster(
        tmp_path,
        combined=(),
        controllers=(1, 2, 3),
        brokers=(4, 5, 6),
        settings={**SETTINGS, "broker.heartbeat.interval.ms": 200},
    ) as cluster:
        cluster.start()
        create(cluster, 3)
        active, victim = controller(cluster, 4), 4
        wait_for(lambda: is_known(cluster, victim), "its listener was seen by the controllers")
        cluster[active].kill()
        cluster[victim].kill()
        assert not produced(cluster, 3)
        told = f"broker {victim} is gone: it refuses connections; it is fenced"
        assert sum(told in node.log_text() for node in cluster) == 1


def test_a_stopped_process_is_not_taken_for_dead(cluster: Cluster) -> None:
    create(cluster, 1)
    active = controller(cluster, 1)
    victim = next(i for i in (1, 2, 3) if i != active)
    cluster[victim].pause()
    try:
        other = next(i for i in (1, 2, 3) if i not in (active, victim))
        cluster[other].kill()
        told = f"broker {other} is gone: it refuses connections"
        wait_for(lambda: told in cluster[active].log_text(), "the death of another one")
        assert f"broker {victim} is gone" not in cluster[active].log_text()
    finally:
        cluster[victim].resume()
