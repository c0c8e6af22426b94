"""The recording of `test_metrics_golden.py` asked anew of Apache Kafka, scraped through
the JMX exporter; KWIRE_RECORD=1 writes it."""

from __future__ import annotations

import gzip
import json
import os
import pathlib

import pytest

from kwire.testing.cluster import free_adjacent_ports
from tests.golden.test_metrics_golden import OF_SHARES, RECORDING
from tests.support.kafka import running_kafka
from tests.support.metrics import Comparable, measured
from tests.support.share.dialogue import PROPERTIES as SHARE_PROPERTIES
from tests.support.share.measured import measured_shares

pytest.importorskip("prometheus_client")

RULES = pathlib.Path(__file__).resolve().parents[1] / "support" / "jmx" / "rules.yml"
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def agent() -> pathlib.Path:
    """The exporter's jar; skips the test when it was not fetched (`make peers`)."""
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    found = sorted((cache / "jmx").glob("jmx_prometheus_javaagent-*.jar"))
    if not found:
        pytest.skip("needs the JMX exporter (make peers)")
    return found[-1]


def test_kafka_changes_what_was_recorded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_adjacent_ports()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{agent()}={port}:{RULES}")
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        found = measured(bootstrap, f"http://127.0.0.1:{port}/metrics")
    _compare(found, RECORDING)


def test_kafka_changes_what_was_recorded_of_share_groups(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_adjacent_ports()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{agent()}={port}:{RULES}")
    with running_kafka(tmp_path, SHARE_PROPERTIES) as bootstrap:
        found = measured_shares(bootstrap, f"http://127.0.0.1:{port}/metrics")
    _compare(found, OF_SHARES)


def _compare(found: Comparable, recording: pathlib.Path) -> None:
    """What was found with what is recorded; with KWIRE_RECORD=1 it becomes what is recorded."""
    told = json.dumps(found)
    if os.environ.get("KWIRE_RECORD"):
        recording.write_bytes(gzip.compress(told.encode(), 9, mtime=0))
    recorded = Comparable(*json.loads(gzip.decompress(recording.read_bytes())))
    now = Comparable(*json.loads(told))
    assert now.changes == recorded.changes
    assert now.types == recorded.types
    assert now.labels == recorded.labels
