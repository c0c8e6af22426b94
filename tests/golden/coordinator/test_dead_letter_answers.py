"""What share groups reject becomes what Apache Kafka 4.4 makes of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.golden.coordinator import dead_letter_dialogues as dialogues

DATA = Path(__file__).parent.parent / "data" / "dead_letter_answers.json.gz"


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, Any]]:
    with Broker(options=dialogues.PROPERTIES) as broker:
        yield dict(dialogues.run(broker.bootstrap))


@pytest.mark.parametrize("case", [*dialogues.CASES, dialogues.CREATED[0]])
def test_dead_letters_are_kafkas(case: str, answers: dict[str, Any]) -> None:
    assert answers[case] == json.loads(gzip.decompress(DATA.read_bytes()))[case]
