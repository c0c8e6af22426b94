"""The recorded answers that hang on settings are Kafka's: a live one is asked (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.golden.broker.settings_dialogues import PROPERTIES, run
from tests.golden.broker.test_settings_answers import DATA
from tests.support.kafka import running_kafka


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        answers = dict(run(bootstrap))
    for part, expected in recorded.items():
        given = answers[part]
        assert {x: given.get(x) for x in expected if given.get(x) != expected[x]} == {}, part
