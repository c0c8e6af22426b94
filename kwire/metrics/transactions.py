"""Transactions that this node coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from kwire.coordinator.transaction.service import TransactionCoordinator
from kwire.metrics.blocks import Row, encoded, in_blocks

SHOWN_MAX = 1000
PARTITIONS_A_TURN = 300
MS_PER_S = 1000


def read_transactions(transactions: TransactionCoordinator, wall_ms: int) -> Iterator[bytes]:
    """Of the transactional ids that this node coordinates: how many are in which state, and how
    long those have lasted that are open."""
    runtime = transactions.runtime
    states: Counter[str] = Counter()
    for index in runtime.partitions():
        shard = runtime.shard(index)
        if shard is None:
            continue
        for at, metadata in enumerate(list(shard.transactions.values())):
            states[metadata.state.name.lower()] += 1
            if at % PARTITIONS_A_TURN == PARTITIONS_A_TURN - 1:
                yield b""
        rows: list[Row] = []
        for transactional_id in islice(list(shard.ongoing), SHOWN_MAX):
            found = shard.transactions.get(transactional_id)
            if found is not None:
                age_s = (wall_ms - found.start_ms) / MS_PER_S
                rows.append((transactional_id, str(found.producer_id), round(max(0.0, age_s), 3)))
        names = ("kwire_transaction_open_seconds",)
        yield from in_blocks(("transactionalId", "producerId"), names, rows)
    yield encoded(("state",), ("kwire_transactional_ids",), list(states.items()))
