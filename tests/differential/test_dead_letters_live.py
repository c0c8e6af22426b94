"""The recorded dead letters are Kafka's: a live one is asked (needs a JVM)."""

from __future__ import annotations

import gzip
import json
import pathlib

from tests.golden.coordinator.dead_letter_dialogues import PROPERTIES, run
from tests.golden.coordinator.test_dead_letter_answers import DATA
from tests.support.kafka import running_kafka


def test_recorded_dead_letters_are_what_kafka_writes(tmp_path: pathlib.Path) -> None:
    recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        assert dict(run(bootstrap)) == recorded
