"""The recorded answers about configs are still Kafka's: a live one is asked (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.support.config_scenario import DATA, STATIC_PROPERTIES, comparable, play
from tests.support.kafka import running_kafka


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress((DATA / "config_answers.json.gz").read_bytes()))
    with running_kafka(tmp_path, STATIC_PROPERTIES) as bootstrap:
        answers = comparable(play(bootstrap))
    different = {
        step: answers.get(step) for step in recorded if answers.get(step) != recorded[step]
    }
    assert different == {}
