"""Quotas at random: Kafka's quota managers make clients wait as long as ours (needs a JVM)."""

from __future__ import annotations

import pytest

from tests.golden.quota.test_quota_answers import drawn
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs
from tests.support.quota_scripts import answers_of_kafka, differences

SCRIPTS = 2000


@pytest.mark.parametrize("seed", seeds(1))
def test_waits_are_those_of_kafka(seed: int) -> None:
    scripts = drawn(seed, SCRIPTS)
    said = answers_of_kafka(scripts, kafka_libs(), 540)
    assert len(said) == sum(map(len, scripts))
    wrong = differences(scripts, said)
    assert wrong == [], f"{len(wrong)} answers differ, seed {seed}"
