"""State of share partitions under failures (`share_state.py`), and mutations to be found there."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.sim.share_state import ShareStateHistory
from tests.sim.share_state_mutations import MUTATIONS
from tests.support.effort import seeds

SEEDS = 3
SEEDS_OF_MUTATION = 30
FIRST = {
    "acknowledged_before_commit": 33,
    "answers_of_a_lost_log_are_kept": 2,
    "leader_epochs_are_not_written": 3,
}
"""Seeds that find a mutation, where it is not the first one."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Crashes are told in many lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.collect()


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_what_was_acknowledged_stays_and_fences_hold(seed: int) -> None:
    history = ShareStateHistory(seed)
    history.run()
    assert history.reads
    assert history.writes
    assert history.fenced


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found(name: str) -> None:
    for seed in dict.fromkeys((FIRST.get(name, 0), *range(SEEDS_OF_MUTATION))):
        with applied(name, MUTATIONS):
            try:
                ShareStateHistory(seed).run()
            except Violation:
                return
    pytest.fail(f"{name} is not found by {SEEDS_OF_MUTATION} seeds")
