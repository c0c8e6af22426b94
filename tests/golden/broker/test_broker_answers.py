"""The data plane answers as Apache Kafka 4.4 does: hundreds of requests, every version."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.golden.broker import dialogues

DATA = Path(__file__).parent.parent / "data" / "broker_answers.json.gz"


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, dict[str, Any]]]:
    with Broker(options={"offsets.topic.num.partitions": 4}) as broker:
        yield dict(dialogues.run(broker.bootstrap))


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, Any]]:
    with gzip.open(DATA) as file:
        loaded: dict[str, dict[str, Any]] = json.load(file)
    return loaded


@pytest.mark.parametrize("part", [part.__name__ for part in dialogues.PARTS])
def test_answers_are_kafkas(
    part: str, answers: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]]
) -> None:
    ours, theirs = answers[part], expected[part]
    assert sorted(ours) == sorted(theirs)
    wrong = {label: (ours[label], theirs[label]) for label in ours if ours[label] != theirs[label]}
    shown = "\n".join(f"{label}\n  ours  {a}\n  Kafka {b}" for label, (a, b) in wrong.items())
    assert not wrong, f"{len(wrong)} of {len(ours)} answers differ\n{shown}"
