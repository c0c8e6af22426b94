"""Transactions are whole whatever happens to the broker; see transactions.py."""

from __future__ import annotations

import pytest

from tests.sim.transactions import UNKNOWN, Ledger
from tests.support.effort import seeds

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("seed", seeds(10))
def test_a_transaction_is_whole_or_not_at_all(seed: int) -> None:
    Ledger(seed).run()


def test_kills_do_fall_into_transactions() -> None:
    """What is checked above is not only what went well: answers to a commit do get lost."""
    ledgers = [Ledger(seed) for seed in range(1, 9)]
    for ledger in ledgers:
        ledger.run()
    unknown = [x for ledger in ledgers for x in ledger.outcomes.values() if x == UNKNOWN]
    assert unknown
