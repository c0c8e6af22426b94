"""The recorded answers to clients that authenticate are Kafka's: a live one is asked (needs a
JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.golden.broker.sasl_dialogues import PROPERTIES, run
from tests.golden.broker.test_sasl_answers import DATA
from tests.support.kafka import running_kafka


def test_recorded_answers_are_what_kafka_says(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        answers = dict(run(bootstrap, recorded))
    assert {x: answers.get(x) for x in recorded if answers.get(x) != recorded[x]} == {}
