"""ACLs that change under failures (`acls.py`), and the mutations that must be found there."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from tests.sim.acl_mutations import MUTATIONS
from tests.sim.acls import CHANGES, AclHistory
from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.support.effort import seeds

SEEDS = 6
SEEDS_OF_MUTATION = 40  # one in eight finds what is found least


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Crashes are told in many lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.collect()


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_every_decision_is_by_committed_rules(seed: int) -> None:
    history = AclHistory(seed)
    history.run()
    assert history.changes == CHANGES
    assert history.asked > CHANGES * 3


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found(name: str) -> None:
    for seed in range(SEEDS_OF_MUTATION):
        with applied(name, MUTATIONS):
            try:
                AclHistory(seed).run()
            except Violation:
                return
    pytest.fail(f"{name} is not found by {SEEDS_OF_MUTATION} seeds")


def test_one_seed_is_one_history() -> None:
    fingerprints = set()
    for _ in range(2):
        history = AclHistory(3)
        history.run()
        fingerprints.add(history.simulation.fingerprint())
    assert len(fingerprints) == 1
