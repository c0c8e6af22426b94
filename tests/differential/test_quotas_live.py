"""Quotas: Kafka makes clients wait as long as kwire does, and answers the same (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from tests.golden.broker.quota_dialogues import run
from tests.golden.broker.test_quota_dialogues import DATA
from tests.golden.quota.test_quota_answers import clients, drawn
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.quota_scripts import answers_of_kafka, differences

SCRIPTS, CLIENTS = 2000, 200


@pytest.mark.parametrize("seed", seeds(1))
def test_waits_are_those_of_kafka(seed: int) -> None:
    scripts = drawn(seed, SCRIPTS) + clients(seed, CLIENTS)
    said = answers_of_kafka(scripts, kafka_libs(), 540)
    assert len(said) == sum(map(len, scripts))
    wrong = differences(scripts, said)
    assert wrong == [], f"{len(wrong)} answers differ, seed {seed}"


def test_recorded_answers_about_quotas_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    with running_kafka(tmp_path) as bootstrap:
        answers = run(bootstrap)
    assert {x: answers.get(x) for x in recorded if answers.get(x) != recorded[x]} == {}
