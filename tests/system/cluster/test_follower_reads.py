"""Reading from leader and follower, and below min.insync.replicas: as Apache Kafka answers."""

from __future__ import annotations

from pathlib import Path

from kwire.testing.cluster import Cluster
from tests.support.follower_reads import EXPECTED, SETTINGS, answers


def test_kwire_answers_as_kafka_does(tmp_path: Path) -> None:
    with Cluster(tmp_path, combined=(1,), brokers=(2,), settings=SETTINGS) as cluster:
        for node in cluster:
            node.settings["broker.rack"] = f"r{node.node_id}"
        cluster.start()
        assert answers(cluster) == EXPECTED
