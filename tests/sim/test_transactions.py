"""Transactions are whole whatever happens to the broker; see transactions.py."""

from __future__ import annotations

import os

import pytest

from tests.sim.transactions import Ledger

SEED = int(os.environ.get("KWIRE_SIM_SEED", "1"))
SEEDS = 40 if os.environ.get("KWIRE_STRESS") else 6


@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
def test_a_transaction_is_whole_or_not_at_all(seed: int) -> None:
    Ledger(seed).run()
