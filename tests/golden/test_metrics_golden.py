"""What the same requests change at `/metrics`, and at Apache Kafka 4.4 seen by the JMX exporter.

`data/metrics_answers.json.gz`, and `data/share_metrics.json.gz` of share groups, are recorded by
`tests/differential/test_metrics_live.py` (with KWIRE_RECORD=1), from a node with the JMX exporter
and `tests/support/jmx/rules.yml`.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from kwire.metrics.families import families
from kwire.testing.cluster import Broker
from tests.support.metrics import Comparable, measured
from tests.support.share.dialogue import PROPERTIES
from tests.support.share.measured import measured_shares
from tests.system.test_http import port_of

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

RECORDING = pathlib.Path(__file__).parent / "data" / "metrics_answers.json.gz"
OF_SHARES = RECORDING.with_name("share_metrics.json.gz")
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


def test_no_metric_of_the_catalogue_is_one_that_kafka_has_not(
    kafka: Comparable, kafka_shares: Comparable
) -> None:
    own = {x.name for x in families().values() if x.name.startswith("kafka_")}
    shown = {*kafka.types, *kafka_shares.types}
    assert own - ONLY_HERE - NO_QUOTA_ASKED - shown == set()


# -- share groups


@pytest.fixture(scope="module")
def kafka_shares() -> Comparable:
    return Comparable(*json.loads(gzip.decompress(OF_SHARES.read_bytes())))


@pytest.fixture(scope="module")
def kwire_shares() -> Comparable:
    with Broker(options={**PROPERTIES, "http.listeners": "http://127.0.0.1:0"}) as broker:
        url = f"http://127.0.0.1:{port_of(broker)}/metrics"
        return Comparable(*json.loads(json.dumps(measured_shares(broker.bootstrap, url))))


def test_share_metrics_have_kafka_s_names_types_and_labels(
    kafka_shares: Comparable, kwire_shares: Comparable
) -> None:
    assert len(kwire_shares.types) > 20
    assert set(kwire_shares.types) <= set(kafka_shares.types)
    for name, of_metric in kwire_shares.types.items():
        assert of_metric == kafka_shares.types[name], name
        assert kwire_shares.labels[name] == kafka_shares.labels[name], name


def test_share_counters_and_gauges_change_by_the_same(
    kafka_shares: Comparable, kwire_shares: Comparable
) -> None:
    """Of all that both show."""
    shared = set(kwire_shares.types)
    assert kwire_shares.changes == [x for x in kafka_shares.changes if x[0] in shared]
    assert len(kwire_shares.changes) > 10
