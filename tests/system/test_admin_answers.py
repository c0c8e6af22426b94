"""Admin requests over the wire: kwire's answers are those of Apache Kafka 4.4.

The dialogue is `tests/support/admin_scenario.py`; `tests/golden/data/admin_answers.json.gz` holds
what one node of Kafka answered, recorded by the same code. Ids go by name, lists have no order.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support.admin_scenario import DATA, play

RECORDED: list[Any] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    directory: pathlib.Path = tmp_path_factory.mktemp("admin")
    options = {"node.id": 1, "num.partitions": 1}
    with Broker(data_dir=directory, options=options) as broker:
        yield json.loads(json.dumps(play(broker.bootstrap)))


def test_the_same_requests_were_recorded(answers: list[Any]) -> None:
    assert [step[:2] for step in answers] == [step[:2] for step in RECORDED]


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_the_answer_is_kafkas(answers: list[Any], number: int) -> None:
    assert answers[number] == RECORDED[number]
