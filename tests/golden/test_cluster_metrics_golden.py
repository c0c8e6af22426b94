"""What three nodes show of replication, beside three of Apache Kafka 4.4 seen by the JMX exporter.

`data/cluster_metrics.json.gz` is recorded by
`tests/differential/rates/test_cluster_metrics_live.py`
(with KWIRE_RECORD=1); what happens there is in `tests/support/cluster_metrics.py`.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from kwire.testing.cluster import Cluster, free_ports
from tests.support.cluster_metrics import COMPARED, SETTINGS, Told, measured_cluster

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

RECORDING = pathlib.Path(__file__).parent / "data" / "cluster_metrics.json.gz"


@pytest.fixture(scope="module")
def kafka() -> Told:
    told: Told = json.loads(gzip.decompress(RECORDING.read_bytes()))
    return told


@pytest.fixture(scope="module")
def kwire(tmp_path_factory: pytest.TempPathFactory) -> Told:
    root = tmp_path_factory.mktemp("cluster")
    with Cluster(root, combined=(1,), brokers=(2, 3), settings=SETTINGS) as cluster:
        urls = {}
        for node, port in zip(cluster, free_ports(3), strict=True):
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"
            urls[node.node_id] = f"http://127.0.0.1:{port}/metrics"
        cluster.start()
        told: Told = json.loads(json.dumps(measured_cluster(cluster, urls)))
        return told


def test_each_node_shows_kafka_s_values(kafka: Told, kwire: Told) -> None:
    """Of all that both show: leaders, followers, replicas in sync, bytes of replication."""
    assert set(kwire) == set(kafka)
    compared = set()
    for phase, nodes in kafka.items():
        for node_id, of_node in nodes.items():
            ours = kwire[phase][node_id]["values"]
            shared = {name for name, _, _ in ours}
            theirs = [value for value in of_node["values"] if value[0] in shared]
            assert ours == theirs, f"node {node_id}, {phase}"
            compared |= shared
    assert len(compared) > len(COMPARED) * 0.8


def test_each_node_shows_kafka_s_names_types_and_labels(kafka: Told, kwire: Told) -> None:
    for node_id, theirs in kafka["it goes on"].items():
        ours = kwire["it goes on"][node_id]
        assert len(ours["types"]) > 30
        assert set(ours["types"]) <= set(theirs["types"]), node_id
        for name, kind in ours["types"].items():
            assert kind == theirs["types"][name], name
            assert ours["labels"][name] == theirs["labels"][name], name
