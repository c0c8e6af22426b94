"""Client telemetry: what Apache Kafka 4.4 answers, and that what is pushed is shown at `/metrics`.

`tests/golden/data/telemetry_answers.json.gz` holds what Kafka said; `tests/differential` asks anew.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.records.compression import compress
from kwire.protocol.records.header import Codec
from kwire.testing.cluster import Broker
from tests.support.metrics import Scrape, scrape
from tests.support.telemetry import otlp_writer as otlp
from tests.support.telemetry.dialogue import (
    HOUR_MS,
    PROPERTIES,
    alter,
    dialogue,
    get,
    own_id,
    push,
    set_subscription,
)
from tests.support.wire import WireClient
from tests.system.test_http import children, port_of, wait_for

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

DATA = pathlib.Path(__file__).parents[1] / "golden" / "data" / "telemetry_answers.json.gz"
SENT = "org.apache.kafka.producer.record.send.total"
SHOWN = "org_apache_kafka_producer_record_send_total"
LISTENER = {"http.listeners": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**PROPERTIES, **LISTENER}) as found:
        yield found


def shown(broker: Broker) -> Scrape:
    return scrape(f"http://127.0.0.1:{port_of(broker)}/metrics")


def counts(found: Scrape) -> dict[str, float]:
    """What is shown of each client of `pushed`."""
    return {
        dict(labels)["node_id"]: value
        for (name, labels), value in found.values.items()
        if name == SHOWN
    }


def pushed(client: WireClient, number: int, value: int, codec: Codec = Codec.NONE) -> bytes:
    instance_id = own_id(10_000_000 + number)
    known = get(client, instance_id).subscription_id
    data = otlp.metrics(otlp.total(SENT, otlp.point(value, {"node.id": number})))
    sent = compress(codec, data)
    assert push(client, instance_id, known, sent, int(codec)) == [0, 0]
    last = otlp.metrics(otlp.total(SENT, otlp.point(1, {"node.id": number})))
    assert push(client, instance_id, known, last, terminating=True) == [0, 0]
    return instance_id


def test_a_conversation_about_telemetry_is_that_of_kafka(broker: Broker) -> None:
    recorded: list[Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    ours = json.loads(json.dumps(dialogue(broker.bootstrap)))
    assert len(ours) == len(recorded) > 100
    for said, expected in zip(ours, recorded):
        assert said == expected


def test_what_clients_push_is_shown_by_client(broker: Broker) -> None:
    with WireClient(broker.bootstrap) as client:
        set_subscription(client, "shown", {"interval.ms": HOUR_MS, "metrics": "*"})
        for number, codec in enumerate(Codec):
            pushed(client, number, 10 * number, codec)
        known = get(client, own_id(20_000_000)).subscription_id
        push(client, own_id(20_000_000), known, b"garbage")
        found = shown(broker)
        assert counts(found) == {str(number): 10 * number + 1 for number in range(5)}
        assert found.types[SHOWN] == "counter"
        (labels,) = (
            dict(x) for (name, x) in found.values if name == SHOWN and ("node_id", "3") in x
        )
        assert labels.pop("client_instance_id").startswith("ilwvELPnTW8")
        assert labels == {
            "client_id": "test",
            "client_software_name": "unknown",
            "client_software_version": "unknown",
            "node_id": "3",
        }
        assert counts(shown(broker)) == counts(found)
        assert found.value("kwire_client_telemetry_unreadable_total") >= 1
        assert found.value("kwire_client_telemetry_dropped_total") == 0
        assert found.value("kafka_server_client_metrics_instance_count") >= 6
        set_subscription(client, "shown", {"interval.ms": None, "metrics": None})


def test_the_last_push_of_each_client_is_shown_by_a_process_that_is_started_anew(
    broker: Broker,
) -> None:
    with WireClient(broker.bootstrap) as client:
        set_subscription(client, "again", {"interval.ms": HOUR_MS, "metrics": "*"})
        pushed(client, 77, 5)
        assert counts(shown(broker))["77"] == 6
        assert counts(shown(broker))["77"] == 6  # now the broker knows that it was read
        (pid,) = children(broker.pid)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: pid not in children(broker.pid))
        assert counts(shown(broker))["77"] == 1  # what was before it counts from 0 again
        set_subscription(client, "again", {"interval.ms": None, "metrics": None})


@pytest.mark.parametrize("options", [{}, {**LISTENER, "http.serves": "health"}])
def test_without_a_reader_the_apis_are_left_out_and_answered(options: dict[str, str]) -> None:
    with Broker(options=options) as broker, WireClient(broker.bootstrap) as client:
        hello = m.ApiVersionsRequest(client_software_name="x", client_software_version="1")
        keys = {one.api_key for one in client.call(hello, 4).api_keys}
        assert not keys & {71, 72}
        known = get(client, own_id(1)).subscription_id
        assert push(client, own_id(1), known, b"x") == [0, 0]


def test_librdkafka_pushes_what_is_asked_of_it() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    with Broker(options=LISTENER) as broker, WireClient(broker.bootstrap) as client:
        asked = {
            "interval.ms": "100",
            "metrics": "org.apache.kafka.producer.",
            "match": "client_software_name=confluent-kafka-python|librdkafka",
        }
        assert alter(client, "librdkafka", asked) == [0, None]
        client.create_topic("pushed")
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "client.id": "counted"}
        )
        producer.produce("pushed", b"value")
        producer.flush(60)

        def series() -> list[dict[str, str]]:
            return [
                dict(labels)
                for (name, labels) in shown(broker).values
                if name.startswith("org_apache_kafka_producer_")
            ]

        wait_for(series)
        assert {one["client_id"] for one in series()} == {"counted"}
        assert all(
            "librdkafka" in one["client_software_name"]
            or "confluent" in one["client_software_name"]
            for one in series()
        )
        del producer
