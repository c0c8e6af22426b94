"""The recording of real failures of two brokers, asked anew of a live Apache Kafka."""

from __future__ import annotations

import json
import pathlib

from tests.support.cluster_fault_answers import DATA, recorded, started


def test_a_cluster_of_kafka_answers_as_recorded(tmp_path: pathlib.Path) -> None:
    with started(tmp_path) as cluster:
        assert recorded(cluster.start()) == json.loads(DATA.read_text())
