"""What the same requests change at `/metrics`, and at Apache Kafka 4.4 seen by the JMX exporter.

`data/metrics_answers.json.gz` is recorded by `tests/differential/test_metrics_live.py` (with
KWIRE_RECORD=1), from a node with the JMX exporter and `tests/support/jmx/rules.yml`.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from kwire.metrics.families import families
from kwire.testing.cluster import Broker
from tests.support.metrics import Comparable, measured
from tests.system.test_http import port_of

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

RECORDING = pathlib.Path(__file__).parent / "data" / "metrics_answers.json.gz"
ONLY_HERE = {
    # Kafka has no such metric; other exporters call it so.
    "kafka_consumergroup_committed_offset",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_seconds",
    # Kafka shows it once a fetch has waited in vain.
    "kafka_server_delayedfetchmetrics_expires_total",
}


@pytest.fixture(scope="module")
def kafka() -> Comparable:
    return Comparable(*json.loads(gzip.decompress(RECORDING.read_bytes())))


@pytest.fixture(scope="module")
def kwire() -> Comparable:
    options = {
        "http.listeners": "http://127.0.0.1:0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with Broker(options=options) as broker:
        found = measured(broker.bootstrap, f"http://127.0.0.1:{port_of(broker)}/metrics")
        return Comparable(*json.loads(json.dumps(found)))


def test_names_are_kafka_s(kafka: Comparable, kwire: Comparable) -> None:
    assert set(kwire.types) - set(kafka.types) == ONLY_HERE


def test_types_and_labels_are_kafka_s(kafka: Comparable, kwire: Comparable) -> None:
    shared = set(kwire.types) & set(kafka.types)
    assert {n: kwire.types[n] for n in shared} == {n: kafka.types[n] for n in shared}
    assert {n: kwire.labels[n] for n in shared} == {n: kafka.labels[n] for n in shared}


def test_counters_grow_by_the_same(kafka: Comparable, kwire: Comparable) -> None:
    """Of all that both show. The one difference: a histogram that is always 0 here, and one of
    throttling that has another name."""
    shared = set(kwire.types)
    expected = [change for change in kafka.changes if change[0] in shared]
    assert kwire.changes == expected
    assert len(expected) > 100


NO_QUOTA_ASKED = {"kafka_server_quota_byte_rate", "kafka_server_quota_request_time"}


def test_no_metric_of_the_catalogue_is_one_that_kafka_has_not(kafka: Comparable) -> None:
    own = {x.name for x in families().values() if x.name.startswith("kafka_")}
    missing = {n for n in own - ONLY_HERE - NO_QUOTA_ASKED if n not in kafka.types}
    assert missing == set()
