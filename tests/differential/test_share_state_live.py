"""The recorded answers of share coordinators are Kafka's: a live one is asked (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.golden.coordinator.share_state_dialogues import PROPERTIES, run
from tests.golden.coordinator.test_share_state_answers import DATA
from tests.support.kafka import running_kafka


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        answers = dict(run(bootstrap))
    for part, expected in recorded.items():
        given = answers[part]
        assert {x: given.get(x) for x in expected if given.get(x) != expected[x]} == {}, part
