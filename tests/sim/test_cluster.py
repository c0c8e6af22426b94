"""Whole clusters from seeds: nothing acknowledged is lost, nothing is seen that must not be.

`make sim SEED=42` replays one seed, `make sim RUNS=1000` runs many; a failure prints the seed, the
fingerprint of its history and what was broken. Mutations show that the checkers can fail.
"""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim import mutations
from tests.sim.constructed import ROWS
from tests.sim.faults import ROW_KINDS, Plan
from tests.sim.history import OPERATIONS_MIN, History
from tests.sim.search import found_by
from tests.support.effort import seeds

ROOT = Path(__file__).resolve().parents[2]
SEEDS = int(os.environ.get("KWIRE_SIM_RUNS") or 120)
SEEDS_FROM_PIN = 12
MUTATIONS_MIN = 20


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Crashes are told in many lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.collect()


@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_a_history_keeps_every_promise(seed: int) -> None:
    result = History(seed).run()
    assert result.violation is None, result.line()
    assert result.operations >= OPERATIONS_MIN, result.line()


@pytest.mark.parametrize("seed", seeds(3))
def test_a_history_with_fewer_files_open_than_logs_keeps_every_promise(seed: int) -> None:
    result = History(seed, few_files=True).run()
    assert result.violation is None, result.line()


def test_a_history_without_faults() -> None:
    result = History(1, Plan()).run()
    assert result.violation is None, result.line()
    assert not result.faults


@pytest.mark.parametrize("name", sorted(mutations.SEEDS))
def test_a_mutation_is_found(name: str) -> None:
    """By its pinned seed, or one of the next: any change of the code changes every history."""
    first = mutations.SEEDS[name]
    seed, _ = found_by(name, first, SEEDS_FROM_PIN)
    assert seed is not None, f"{name} is not found by the seeds from {first} on"


@pytest.mark.parametrize("name", sorted(mutations.AIMED))
def test_the_code_as_it_is_passes_what_finds_a_mutation(name: str) -> None:
    """The same seed and faults; a row of events that is constructed comes about here too."""
    plan = mutations.AIMED[name]
    result = History(mutations.SEEDS[name], plan).run()
    assert result.violation is None, result.line()
    if set(plan.kinds) & set(ROW_KINDS):
        assert result.faults.get(ROWS), result.line()


def test_every_mutation_is_pinned() -> None:
    assert set(mutations.SEEDS) == set(mutations.MUTATIONS)
    assert len(mutations.SEEDS) >= MUTATIONS_MIN


def test_mutations_are_undone() -> None:
    from kwire.replica.partition import Partition

    before = Partition.wait_for_commit
    with mutations.applied("ack_before_high_watermark"):
        assert Partition.wait_for_commit is not before
    assert Partition.wait_for_commit is before


def test_one_seed_is_one_history_whatever_the_hash_seed_of_the_process() -> None:
    def fingerprint(hash_seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tests.sim.history", "8"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()[2]

    assert fingerprint("0") == fingerprint("4711")
