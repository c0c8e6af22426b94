"""Dynamic settings with config providers: kwire's answers are those of Apache Kafka 4.4.

The history is `tests/support/dynamic_provider_scenario.py`;
`tests/differential/test_dynamic_providers_live.py` asks a live Kafka.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kwire.testing.cluster import Broker, free_adjacent_ports
from tests.support.config_scenario import peer_properties
from tests.support.dynamic_provider_scenario import RECORDED, STATIC, play, write_values

ANSWERS: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("providers").resolve()
    write_values(directory)
    port = free_adjacent_ports()
    static = {name: text.replace("@", str(directory)) for name, text in STATIC.items()}
    properties = peer_properties(port, static) | {"log.dirs": str(directory / "data")}
    broker = Broker(port=port, properties=properties, pass_listen=False)
    try:
        answers = play(broker.start().bootstrap, directory)
        assert "hush" not in broker.log_text()
        return answers
    finally:
        broker.close()


def test_the_same_steps_were_recorded(answers: dict[str, Any]) -> None:
    assert list(answers) == list(ANSWERS)


@pytest.mark.parametrize("step", [*ANSWERS])
def test_answer_is_kafkas(answers: dict[str, Any], step: str) -> None:
    assert answers[step] == ANSWERS[step]
