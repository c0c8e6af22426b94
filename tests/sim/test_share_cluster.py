"""Share groups in whole clusters from seeds (`share_cluster.py`), and mutations to be found."""

from __future__ import annotations

import gc

import pytest

from tests.sim.application import quiet
from tests.sim.share_cluster import ShareClusterHistory
from tests.sim.share_cluster_mutations import AIMED, MUTATIONS, SEEDS
from tests.sim.share_histories import is_found
from tests.support.effort import seeds

__all__ = ["quiet"]  # a fixture of every test here

HISTORIES = 3
MUTATIONS_MIN = 12


@pytest.mark.parametrize("seed", seeds(HISTORIES))
def test_records_come_until_they_are_acknowledged_whatever_fails(seed: int) -> None:
    history = ShareClusterHistory(seed)
    history.run()
    assert history.checker.seen["acquired"], history.told()
    gc.collect()


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found(name: str) -> None:
    assert is_found(
        lambda seed: ShareClusterHistory(seed, AIMED[name]), name, MUTATIONS, SEEDS[name]
    )


@pytest.mark.parametrize("plan", sorted({id(plan): name for name, plan in AIMED.items()}.values()))
def test_the_code_as_it_is_passes_what_finds_mutations(plan: str) -> None:
    ShareClusterHistory(SEEDS[plan], AIMED[plan]).run()
    gc.collect()


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= MUTATIONS_MIN
