"""Records of share groups are delivered until they are acknowledged, and not after
(`share_deliveries.py`); mutations to be found there."""

from __future__ import annotations

import gc

import pytest

from tests.sim.application import quiet
from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.sim.share_deliveries import ShareHistory
from tests.sim.share_delivery_mutations import MUTATIONS
from tests.support.effort import seeds

__all__ = ["quiet"]  # a fixture of every test here

SEEDS = 2
SEEDS_OF_MUTATION = 12


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_records_come_until_they_are_acknowledged_and_not_after(seed: int) -> None:
    history = ShareHistory(seed)
    history.run()
    assert len(history.checker.sent) >= 50
    assert {"accepted", "rejected"} == set(history.checker.ended.values())
    gc.collect()


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found(name: str) -> None:
    for seed in range(SEEDS_OF_MUTATION):
        with applied(name, MUTATIONS):
            try:
                ShareHistory(seed).run()
            except Violation:
                return
            finally:
                gc.collect()
    pytest.fail(f"{name} is not found by {SEEDS_OF_MUTATION} seeds")
