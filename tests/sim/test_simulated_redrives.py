"""Redrives of dead letters in whole clusters from seeds (`share_redrive.py`), and mutations."""

from __future__ import annotations

import gc

import pytest

from tests.sim.application import quiet
from tests.sim.share_histories import is_found
from tests.sim.share_redrive import RedriveHistory
from tests.sim.share_redrive_mutations import AIMED, MUTATIONS, SEEDS
from tests.support.effort import seeds

__all__ = ["quiet"]  # a fixture of every test here

HISTORIES = 3


@pytest.mark.parametrize("seed", seeds(HISTORIES))
def test_each_original_is_sent_once_whatever_fails(seed: int) -> None:
    history = RedriveHistory(seed)
    history.run()
    assert history.sent, history.told()
    gc.collect()


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_of_redrives_is_found(name: str) -> None:
    assert is_found(lambda seed: RedriveHistory(seed, AIMED[name]), name, MUTATIONS, SEEDS[name])


@pytest.mark.parametrize("plan", sorted({id(plan): name for name, plan in AIMED.items()}.values()))
def test_the_code_as_it_is_passes_what_finds_mutations_of_redrives(plan: str) -> None:
    history = RedriveHistory(SEEDS[plan], AIMED[plan])
    history.run()
    assert history.seen["ended"] + history.seen["frozen"], history.told()
    gc.collect()
