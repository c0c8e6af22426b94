"""The recording of `test_client_telemetry.py` asked anew of Apache Kafka, with a receiver that
takes what clients push; KWIRE_RECORD=1 writes it."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess

import pytest

from kwire.testing.cluster import Broker, wait_for
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.telemetry.dialogue import PROPERTIES, alter, dialogue
from tests.support.wire import WireClient
from tests.system.test_client_telemetry import DATA, LISTENER, shown

RECEIVER = pathlib.Path(__file__).parents[1] / "support" / "telemetry" / "Receiver.java"


def test_kafka_answers_what_was_recorded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = tmp_path / "classes"
    compiler = ["javac", "-nowarn", "-cp", f"{kafka_libs()}/*", "-d", str(classes), str(RECEIVER)]
    subprocess.run(compiler, check=True, timeout=120, capture_output=True)
    monkeypatch.setenv("CLASSPATH_PREFIX", str(classes))
    with running_kafka(tmp_path, {**PROPERTIES, "metric.reporters": "Receiver"}) as bootstrap:
        said = json.dumps(dialogue(bootstrap))
    if os.environ.get("KWIRE_RECORD"):
        DATA.write_bytes(gzip.compress(said.encode(), 9, mtime=0))
    assert json.loads(said) == json.loads(gzip.decompress(DATA.read_bytes()))


def _has_asked(broker: Broker) -> bool:
    return any(
        name == "kafka_network_requestmetrics_requests_total"
        and ("request", "GetTelemetrySubscriptions") in labels
        for name, labels in shown(broker).values
    )


def test_javas_producer_pushes_what_is_asked_of_it() -> None:
    asked = {"interval.ms": "3600000", "metrics": "org.apache.kafka.producer."}
    with Broker(options=LISTENER) as broker, WireClient(broker.bootstrap) as client:
        assert alter(client, "java", asked) == [0, None]
        client.create_topic("pushed")
        command = [
            *("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*"),
            *("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", broker.bootstrap),
            *("--topic", "pushed"),
        ]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
        ) as producer:
            assert producer.stdin is not None
            producer.stdin.write(b"one\ntwo\n")
            producer.stdin.flush()
            # One that ends before it knows what is wanted pushes nothing.
            wait_for(lambda: _has_asked(broker), "it has asked what is wanted of it")
            producer.stdin.close()
            assert producer.wait(120) == 0
        found = shown(broker)
        (sent,) = (
            (dict(labels), value)
            for (name, labels), value in found.values.items()
            if name == "org_apache_kafka_producer_record_send_total"
        )
        assert sent[1] == 2
        assert sent[0]["client_id"] == "console-producer"
        assert sent[0]["client_software_name"] == "apache-kafka-java"
        assert found.value("kwire_client_telemetry_unreadable_total") == 0
        assert found.value("kwire_client_telemetry_left_out_total") == 0
