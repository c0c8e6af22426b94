"""Decisions by sets of ACLs at random: Kafka's StandardAuthorizer takes the same (needs a JVM)."""

from __future__ import annotations

import pytest

from tests.support.acl_questions import answers_of_kafka, drawn, our_answers
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs

COUNT = 400


@pytest.mark.parametrize("seed", seeds(1))
def test_decisions_are_those_of_kafka(seed: int) -> None:
    sets = drawn(seed, COUNT)
    said = answers_of_kafka(sets, kafka_libs(), 240)
    for given, answers in zip(sets, said, strict=True):
        for question, kafkas, ours in zip(given.questions, answers, our_answers(given)):
            assert ours == kafkas, (seed, question, given.acls)
