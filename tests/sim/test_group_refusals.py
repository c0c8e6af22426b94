"""Groups whose log refuses for moments (`group_refusals.py`), and mutations to be found there."""

from __future__ import annotations

import pytest

from kwire.coordinator.group.consumer import progress
from kwire.coordinator.group.share import heartbeat
from tests.sim.group_refusal_mutations import MUTATIONS
from tests.sim.group_refusals import ConsumerRefusals, RefusalHistory, ShareRefusals
from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.support.effort import seeds

SEEDS = 10
SEEDS_OF_MUTATION = 40
FIRST = {"writes_are_not_repeated": 7}
"""Seeds that find a mutation, where it is not one of the first."""
KINDS: tuple[type[RefusalHistory], ...] = (ConsumerRefusals, ShareRefusals)


@pytest.fixture(autouse=True)
def _jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is a large one."""
    monkeypatch.setattr(progress, "INLINE_SIZE_MAX", 0)
    monkeypatch.setattr(heartbeat, "INLINE_SIZE_MAX", 0)


@pytest.mark.parametrize("seed", seeds(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_what_timers_decide_happens_once_the_log_takes_it(
    kind: type[RefusalHistory], seed: int
) -> None:
    history = kind(seed)
    history.run()
    assert history.refused


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found(name: str) -> None:
    for seed in dict.fromkeys((FIRST.get(name, 0), *range(SEEDS_OF_MUTATION))):
        for kind in KINDS:
            with applied(name, MUTATIONS):
                try:
                    kind(seed).run()
                except Violation:
                    return
    pytest.fail(f"{name} is not found by {SEEDS_OF_MUTATION} seeds")
