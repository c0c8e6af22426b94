"""Cordoned log directories: kwire's answers are those of Apache Kafka 4.4 (KIP-1066).

The history is `tests/support/cordon_scenario.py`; `tests/differential/test_cordon_live.py` asks a
live Kafka.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kwire.testing.cluster import Broker, free_adjacent_ports
from tests.support.config_scenario import peer_properties
from tests.support.cordon_scenario import LOG_DIRS, RECORDED, play

ANSWERS: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    base = tmp_path_factory.mktemp("cordoned").resolve()
    port = free_adjacent_ports()
    properties = peer_properties(port) | {"log.dirs": LOG_DIRS.replace("@NODE@", str(base))}
    broker = Broker(port=port, properties=properties, pass_listen=False)
    try:
        return play(broker.start().bootstrap, str(base))
    finally:
        broker.close()


def test_the_same_steps_were_recorded(answers: dict[str, Any]) -> None:
    assert list(answers) == list(ANSWERS)


@pytest.mark.parametrize("step", [*ANSWERS])
def test_answer_is_kafkas(answers: dict[str, Any], step: str) -> None:
    assert answers[step] == ANSWERS[step]
