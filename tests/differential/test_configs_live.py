"""The recorded answers about configs are still Kafka's: a live one is asked (needs a JVM).

`KWIRE_RECORD=1` writes what Kafka says now over the recorded answers of the sweeps.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib

from kwire.cli.client import Client
from kwire.cli.operations import create_topic
from tests.support import config_sweep as sweep
from tests.support.config_scenario import (
    DATA,
    STATIC_PROPERTIES,
    comparable,
    peer_properties,
    play,
)
from tests.support.kafka import kafka_libs, running_kafka

RECORD = os.environ.get("KWIRE_RECORD") == "1"


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress((DATA / "config_answers.json.gz").read_bytes()))
    with running_kafka(tmp_path, STATIC_PROPERTIES) as bootstrap:
        answers = comparable(play(bootstrap))
    different = {
        step: answers.get(step) for step in recorded if answers.get(step) != recorded[step]
    }
    assert different == {}


def test_the_sweep_of_changes_is_answered_as_recorded(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path) as bootstrap:
        port = int(bootstrap.rpartition(":")[2])
        with Client(bootstrap) as client:
            create_topic(client, sweep.TOPIC_NAME, 1, 1, {})
            answers = sweep.play(client.call, sweep.Ports(port, port + 1))
    check_or_record(answers, sweep.DATA)


def test_the_sweep_of_static_settings_is_answered_as_recorded() -> None:
    ports = sweep.Ports(32100, 32101)
    answers = sweep.ask_kafka_config(kafka_libs(), peer_properties(ports.broker, {}), ports)
    check_or_record(answers, sweep.STATIC_DATA)


def test_listeners_without_a_map_of_protocols_are_answered_as_recorded() -> None:
    ports = sweep.Ports(32100, 32101)
    base = peer_properties(ports.broker, {})
    del base[sweep.PROTOCOL_MAP]
    asked = [{"listeners": listeners} for listeners in sweep.WITHOUT_A_MAP]
    answers = sweep.ask_kafka_config(kafka_libs(), base, ports, asked)
    told = [answers.known[sweep.static_key(settings)] for settings in asked]
    assert told == [(1, text) for text in sweep.WITHOUT_A_MAP.values()]


def check_or_record(answers: sweep.Answers, path: pathlib.Path) -> None:
    if RECORD:
        answers.write(path)
    recorded = sweep.Answers.read(path).known
    assert set(answers.known) == set(recorded)
    assert [key for key in recorded if answers.known[key] != recorded[key]] == []
