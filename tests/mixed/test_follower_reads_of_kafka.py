"""The oracle of tests/system/cluster/test_follower_reads.py: Kafka leads, kwire follows."""

from __future__ import annotations

from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.follower_reads import EXPECTED, SETTINGS, answers
from tests.support.kafka import kafka_libs


def test_kafka_leads_and_kwire_follows(tmp_path: Path) -> None:
    kafka_libs()
    kinds = {"kwire": (), "kafka": (1,), "kwire_brokers": (2,)}
    with Cluster(tmp_path, settings=SETTINGS, **kinds) as cluster:  # type: ignore[arg-type]
        for node in cluster:
            node.settings["broker.rack"] = f"r{node.node_id}"
        cluster.start()
        assert answers(cluster) == EXPECTED
