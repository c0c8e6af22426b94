"""Describing and altering configs: kwire's answers are those of Apache Kafka 4.4.

The history is `tests/support/config_scenario.py`. Kafka's answers were recorded from a broker with
the same properties (`tests/differential/test_configs_live.py` asks a live one); what may differ is
`tests/golden/data/config_differences.json`.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import pytest

from kwire.testing.cluster import Broker, free_adjacent_ports
from tests.support.config_scenario import comparable, peer_properties, play

DATA = pathlib.Path(__file__).resolve().parents[1] / "golden" / "data"
RECORDED: dict[str, Any] = json.loads(
    gzip.decompress((DATA / "config_answers.json.gz").read_bytes())
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    port = free_adjacent_ports()
    broker = Broker(
        data_dir=tmp_path_factory.mktemp("configs"),
        port=port,
        properties=peer_properties(port),
        pass_listen=False,
    )
    try:
        return comparable(play(broker.start().bootstrap))
    finally:
        broker.close()


def test_the_same_steps_were_recorded(answers: dict[str, Any]) -> None:
    assert list(answers) == list(RECORDED)


@pytest.mark.parametrize("step", [*RECORDED])
def test_answer_is_kafkas(answers: dict[str, Any], step: str) -> None:
    assert answers[step] == RECORDED[step]
