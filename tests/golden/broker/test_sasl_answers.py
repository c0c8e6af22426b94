"""Clients that do not authenticate as they should are answered as Apache Kafka 4.4 does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.golden.broker import sasl_dialogues

DATA = Path(__file__).parent.parent / "data" / "sasl_answers.json.gz"
RECORDED: dict[str, list[Any]] = json.loads(gzip.decompress(DATA.read_bytes()))

#: Kafka tells here that there is no such user, by refusing it a message earlier than others.
LATER = ("scram unknown", "scram unknown token")


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, list[Any]]]:
    with Broker(options=sasl_dialogues.PROPERTIES) as broker:
        yield dict(sasl_dialogues.run(broker.bootstrap, RECORDED))


def test_every_script_is_recorded() -> None:
    assert [label for label, _ in sasl_dialogues.scripts()] == list(RECORDED)


@pytest.mark.parametrize("label", RECORDED)
def test_answers_are_kafkas(label: str, answers: dict[str, list[Any]]) -> None:
    ours, theirs = answers[label], RECORDED[label]
    if label in LATER:
        assert ours[1] == ["token", 0, "", "r=*,s=*,i=4096", False]
        del ours[1]
    assert ours == theirs
