"""A share coordinator answers, and writes, what Apache Kafka 4.4 does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.golden.coordinator import share_state_dialogues

DATA = Path(__file__).parent.parent / "data" / "share_state_answers.json.gz"


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, dict[str, Any]]]:
    with Broker(options=share_state_dialogues.PROPERTIES) as broker:
        yield dict(share_state_dialogues.run(broker.bootstrap))


@pytest.mark.parametrize("part", [part.__name__ for part, _ in share_state_dialogues.PARTS])
def test_answers_are_kafkas(part: str, answers: dict[str, dict[str, Any]]) -> None:
    ours, theirs = answers[part], json.loads(gzip.decompress(DATA.read_bytes()))[part]
    assert sorted(ours) == sorted(theirs)
    wrong = {label: (ours[label], theirs[label]) for label in ours if ours[label] != theirs[label]}
    shown = "\n".join(f"{label}\n  ours  {a}\n  Kafka {b}" for label, (a, b) in wrong.items())
    assert not wrong, f"{len(wrong)} of {len(ours)} answers differ\n{shown}"
