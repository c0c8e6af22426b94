"""The recording of real failures, asked anew of a live Apache Kafka."""

from __future__ import annotations

import json
import pathlib

from tests.support.fault_answers import DATA, answers
from tests.support.kafka import running_kafka


def test_kafka_answers_as_recorded(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path / "kafka") as bootstrap:
        assert answers(bootstrap) == json.loads(DATA.read_text())
