"""The recorded requests for tokens are Apache Kafka's: its login handler is asked (needs a JVM)."""

from __future__ import annotations

import json
import pathlib

from tests.golden.security.test_token_requests import DATA
from tests.support.kafka import kafka_libs
from tests.support.token_cases import played_by_kafka, results


def test_recorded_requests_are_what_kafka_asks(tmp_path: pathlib.Path) -> None:
    assert results(played_by_kafka(kafka_libs()), tmp_path) == json.loads(DATA.read_text())
