"""Controllers and brokers as processes of their own: `process.roles` one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.history import Writer, check
from tests.support.wire import WireClient

pytest.importorskip("confluent_kafka")


def active_controller(cluster: Cluster) -> int:
    """As the brokers tell it, whom the request is forwarded through."""
    shape = m.DescribeQuorumRequest
    partition = shape.PartitionData(partition_index=0)
    topic = shape.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    with WireClient(f"127.0.0.1:{cluster[4].port}") as client:
        answer = client.call(shape(topics=[topic]), 2)
    return int(answer.topics[0].partitions[0].leader_id) if answer.topics else -1


def create(cluster: Cluster, topic: str) -> None:
    shape = m.CreateTopicsRequest
    wanted = shape.CreatableTopic(name=topic, num_partitions=1, replication_factor=2)
    with WireClient(f"127.0.0.1:{cluster[5].port}") as client:
        answer = client.call(shape(topics=[wanted], timeout_ms=20_000), 7)
    assert answer.topics[0].error_code == 0, answer


def test_brokers_go_on_without_the_controller_that_was_active(tmp_path: Path) -> None:
    with Cluster(tmp_path, combined=(), controllers=(1, 2, 3), brokers=(4, 5)) as cluster:
        cluster.start()
        create(cluster, "before")
        with Writer(cluster.bootstrap, "before") as writer:
            writer.wait_acknowledged()
            victim = active_controller(cluster)
            cluster[victim].kill()
            create(cluster, "after")  # forwarded until the next one answers
            writer.wait_acknowledged()
            cluster[victim].start()
            cluster[victim].wait_ready()
            cluster[4].stop()
            writer.wait_acknowledged()
        check(f"127.0.0.1:{cluster[5].port}", "before", writer)
        assert not writer.failed
        cluster[4].start()
        cluster[4].wait_ready()
        wait_for(lambda: active_controller(cluster) not in (-1, victim), "another one is active")
        for node in (4, 5, 1, 2, 3):
            cluster[node].stop()
