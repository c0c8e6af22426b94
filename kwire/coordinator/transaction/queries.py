"""DescribeTransactions and ListTransactions: what a shard shows of its transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.coordinator.shard_interface import Moment
from kwire.coordinator.transaction.shard import TransactionShard
from kwire.coordinator.transaction.states import TransactionState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class ListFilter(NamedTuple):
    """What ListTransactions asks for; empty sets, -1 and None let everything through."""

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    matches: Callable[[str], bool] | None = None


def describe(
    shard: TransactionShard, transactional_id: str
) -> m.DescribeTransactionsResponse.TransactionState:
    """A DescribeTransactionsResponse.TransactionState, TRANSACTIONAL_ID_NOT_FOUND if unknown."""
    current = shard.transactions.get(transactional_id)
    if current is None:
        return m.DescribeTransactionsResponse.TransactionState(
            transactional_id=transactional_id,
            error_code=int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        )
    topics: dict[str, list[int]] = {}
    for topic, partition in current.partitions:
        topics.setdefault(topic, []).append(partition)
    return m.DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=current.state.text,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.start_ms,
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        topics=[
            m.DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )


def list_transactions(
    shard: TransactionShard, wanted: ListFilter, moment: Moment
) -> list[m.ListTransactionsResponse.TransactionState]:
    """ListTransactionsResponse.TransactionState of every transaction that passes the filter."""
    found = []
    for transactional_id, current in shard.transactions.items():
        if wanted.states and current.state not in wanted.states:
            continue
        if wanted.producer_ids and current.producer_id not in wanted.producer_ids:
            continue
        if wanted.duration_ms >= 0 and moment.wall_ms - current.start_ms <= wanted.duration_ms:
            continue
        if wanted.matches is not None and not wanted.matches(transactional_id):
            continue
        found.append(
            m.ListTransactionsResponse.TransactionState(
                transactional_id=transactional_id,
                producer_id=current.producer_id,
                transaction_state=current.state.text,
            )
        )
    return found
