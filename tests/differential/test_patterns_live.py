"""76,002 patterns from pieces at random: RE2/J says the same of each (needs a JVM)."""

from __future__ import annotations

import pytest

from tests.support.effort import seeds
from tests.support.kafka import kafka_libs
from tests.support.patterns import answers_of_re2j, drawn, our_answer

COUNT = 76_002


@pytest.mark.parametrize("seed", seeds(1))
def test_patterns_mean_what_they_mean_to_re2j(seed: int) -> None:
    patterns = drawn(seed, COUNT)
    said = answers_of_re2j(patterns, kafka_libs(), 540)
    assert len(said) == COUNT
    wrong = {x: (ours, its) for x, its in zip(patterns, said) if (ours := our_answer(x)) != its}
    assert wrong == {}, f"{len(wrong)} of {COUNT}, seed {seed}"
