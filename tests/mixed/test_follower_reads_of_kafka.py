"""The oracle of tests/system/cluster/test_follower_reads.py: Kafka leads, kwire follows."""

from __future__ import annotations

from pathlib import Path

from kwire.testing.cluster import Cluster
from tests.support.follower_reads import EXPECTED, SETTINGS, answers
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode


def test_kafka_leads_and_kwire_follows(tmp_path: Path) -> None:
    kafka_libs()
    kinds = {1: KafkaNode}
    with Cluster(tmp_path, combined=(1,), brokers=(2,), kinds=kinds, settings=SETTINGS) as cluster:
        for node in cluster:
            node.settings["broker.rack"] = f"r{node.node_id}"
        cluster.start()
        assert answers(cluster) == EXPECTED
