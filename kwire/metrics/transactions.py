"""Transactions that this node coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kwire.coordinator.transaction.service import TransactionCoordinator
from kwire.metrics.blocks import Row, encoded, in_blocks, label, single
from kwire.metrics.cluster import average_and_max_ms
from kwire.metrics.quantiles import quantiles

if TYPE_CHECKING:
    from kwire.coordinator.transaction.verifier import TransactionVerifier

COORDINATOR = "kafka_server_transaction_coordinator_metrics_"
VERIFIER = "kafka_server_addpartitionstotxnmanager_"
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
                age_s = round(max(0.0, age_s), 3)
                rows.append((label(transactional_id), str(found.producer_id), age_s))
        names = ("kwire_transaction_open_seconds",)
        yield from in_blocks(("transactionalId", "producerId"), names, rows)
    yield encoded(("state",), ("kwire_transactional_ids",), list(states.items()))
    average, longest = average_and_max_ms(runtime.reloads.times_s)
    yield single(
        {
            f"{COORDINATOR}partition_load_time_avg": average,
            f"{COORDINATOR}partition_load_time_max": longest,
        }
    )


def read_verifications(verifier: TransactionVerifier | None) -> Iterator[bytes]:
    """Whether writes belong to a transaction, asked of its coordinator; by partition those that
    do not."""
    times_s = () if verifier is None else list(verifier.recent_s)
    count = 0 if verifier is None else verifier.verifications
    yield single(
        {
            f"{VERIFIER}verificationtimems": quantiles(count, times_s, 1 / MS_PER_S),
            f"{VERIFIER}verificationfailurerate_total": 0
            if verifier is None
            else verifier.failures,
        }
    )
