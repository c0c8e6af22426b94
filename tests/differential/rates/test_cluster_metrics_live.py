"""The recording of `test_cluster_metrics_golden.py` asked anew of three nodes of Apache Kafka, each
scraped through the JMX exporter; KWIRE_RECORD=1 writes it."""

from __future__ import annotations

import gzip
import json
import os
import pathlib

import pytest

from kwire.testing.cluster import Cluster, Place, free_ports
from tests.differential.test_metrics_live import RULES, agent
from tests.golden.test_cluster_metrics_golden import RECORDING
from tests.support.cluster_metrics import SETTINGS, measured_cluster
from tests.support.kafka_node import KafkaNode

pytest.importorskip("prometheus_client")


def test_three_nodes_show_what_was_recorded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = dict(zip((1, 2, 3), free_ports(3), strict=True))
    exporter = agent()

    class ScrapedNode(KafkaNode):
        def start(self) -> None:
            option = f"-javaagent:{exporter}={ports[self.node_id]}:{RULES}"
            monkeypatch.setenv("JAVA_TOOL_OPTIONS", option)
            super().start()
            monkeypatch.delenv("JAVA_TOOL_OPTIONS")

    def made(place: Place) -> KafkaNode:
        return ScrapedNode(place)

    kinds = dict.fromkeys(ports, made)
    urls = {node_id: f"http://127.0.0.1:{port}/metrics" for node_id, port in ports.items()}
    with Cluster(
        tmp_path, combined=(1,), brokers=(2, 3), kinds=kinds, settings=SETTINGS
    ) as cluster:
        cluster.start()
        told = json.dumps(measured_cluster(cluster, urls))
    if os.environ.get("KWIRE_RECORD"):
        RECORDING.write_bytes(gzip.compress(told.encode(), 9, mtime=0))
    assert json.loads(told) == json.loads(gzip.decompress(RECORDING.read_bytes()))
