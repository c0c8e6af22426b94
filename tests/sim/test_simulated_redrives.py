"""Redrives of dead letters in whole clusters from seeds (`share_redrive.py`), and mutations."""

from __future__ import annotations

import gc

import pytest

from tests.sim.application import quiet
from tests.sim.model import Violation
from tests.sim.mutations import applied
from tests.sim.share_redrive import RedriveHistory
from tests.sim.share_redrive_mutations import AIMED, MUTATIONS, SEEDS
from tests.support.effort import seeds

__all__ = ["quiet"]  # a fixture of every test here

HISTORIES = 3
SEEDS_FROM_PIN = 8


@pytest.mark.parametrize("seed", seeds(HISTORIES))
def test_each_original_is_sent_once_whatever_fails(seed: int) -> None:
    history = RedriveHistory(seed)
    history.run()
    assert history.sent, history.told()
    gc.collect()


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_of_redrives_is_found(name: str) -> None:
    """By its pinned seed, or one of the next: any change of the code changes every history."""
    for seed in range(SEEDS[name], SEEDS[name] + SEEDS_FROM_PIN):
        with applied(name, MUTATIONS):
            try:
                RedriveHistory(seed, AIMED[name]).run()
            except Violation:
                return
            finally:
                gc.collect()
    pytest.fail(f"{name} is not found by {SEEDS_FROM_PIN} seeds from {SEEDS[name]} on")


@pytest.mark.parametrize("plan", sorted({id(plan): name for name, plan in AIMED.items()}.values()))
def test_the_code_as_it_is_passes_what_finds_mutations_of_redrives(plan: str) -> None:
    history = RedriveHistory(SEEDS[plan], AIMED[plan])
    history.run()
    assert history.seen["ended"] + history.seen["frozen"], history.told()
    gc.collect()
