"""What a live Apache Kafka tells on a machine that fails, and while its coordinators load, anew."""

from __future__ import annotations

import json
import pathlib

from tests.support.machine.record import LOADING, OUTCOMES, recorded


def test_kafka_on_a_machine_that_fails_answers_as_recorded(tmp_path: pathlib.Path) -> None:
    outcomes, loading = recorded(tmp_path)
    assert outcomes == json.loads(OUTCOMES.read_text())
    assert loading == json.loads(LOADING.read_text())
