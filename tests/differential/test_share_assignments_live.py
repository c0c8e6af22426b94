"""The simple assignor of share groups beside Apache Kafka's own, with other seeds (needs Java)."""

from __future__ import annotations

import pytest

from tests.golden.coordinator.share_assignments import ask_kafka, ours, questions
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs


@pytest.mark.parametrize("seed", seeds(2))
def test_everybody_gets_the_partitions_that_kafka_gives(seed: int) -> None:
    asked = questions(seed)
    answers = ask_kafka(asked, kafka_libs())
    assert len(answers) == len(asked)
    pairs = zip(asked, answers, strict=True)
    assert [question for question, answer in pairs if ours(question) != answer] == []
