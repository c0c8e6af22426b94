"""Transactions: those that there are, what they hold, and who writes to a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import check
from kwire.protocol import messages as m

Listed: TypeAlias = "m.ListTransactionsResponse.TransactionState"
Described: TypeAlias = "m.DescribeTransactionsResponse.TransactionState"
Writer: TypeAlias = "m.DescribeProducersResponse.ProducerState"


class Transactions:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def listed(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        *,
        longer_than_ms: int = -1,
    ) -> list[Listed]:
        """The transactions of every broker, by transactional id."""
        found: list[Listed] = []
        for node in (await self._cluster.metadata([])).brokers:
            request = m.ListTransactionsRequest(
                state_filters=list(states),
                producer_id_filters=list(producer_ids),
                duration_filter=longer_than_ms,
            )
            response = await self._cluster.call(request, node.node_id)
            check(response.error_code, "transactions")
            found += response.transaction_states
        return sorted(found, key=lambda one: one.transactional_id)

    async def describe(self, transactional_id: str) -> Described:
        """Its state, producer, start and partitions."""

        async def ask(node_id: int) -> Described:
            request = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
            found = (await self._cluster.call(request, node_id)).transaction_states[0]
            check(found.error_code, f"transaction {transactional_id}")
            return found

        return await self._cluster.ask_coordinator(Coordinator.TRANSACTION, transactional_id, ask)

    async def writers(self, topic: str, partition: int) -> list[Writer]:
        """The producers that a partition's leader knows, those of open transactions too."""
        kind = m.DescribeProducersRequest
        request = kind(topics=[kind.TopicRequest(name=topic, partition_indexes=[partition])])

        async def once() -> list[Writer]:
            leader = await self._cluster.leader(topic, partition)
            response = await self._cluster.call(request, leader)
            found = response.topics[0].partitions[0]
            check(found.error_code, f"{topic}-{partition}", found.error_message)
            return list(found.active_producers)

        return await self._cluster.retrying(once)
