"""The coordinators of a broker, bound to its partitions, its metadata and its peers."""

from __future__ import annotations

from typing import Any

from kwire.broker.auto_create import CONSUMER_OFFSETS, TRANSACTION_STATE
from kwire.broker.coordinator_log import PartitionCoordinatorLog
from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.partitioner import partition_for
from kwire.coordinator.transaction.service import TransactionCoordinator
from kwire.coordinator.transaction.shard import TransactionSettings
from kwire.coordinator.transaction.verifier import TransactionVerifier
from kwire.pending import Pending
from kwire.replica.partition import Partition


class Coordinators:
    """Loads and unloads coordinators as the leadership of their partitions moves."""

    def __init__(self, node: Any) -> None:
        self._node = node
        config = node.config
        self.groups = GroupCoordinator(
            settings=GroupSettings.from_config(config.__getitem__),
            partition_log=PartitionCoordinatorLog(CONSUMER_OFFSETS, node.replicas, node.clock),
            loop=node.loop,
            clock=node.clock,
            random=node.random,
            partition_count=lambda: self._count(CONSUMER_OFFSETS, "offsets.topic.num.partitions"),
        )
        self.transactions = TransactionCoordinator(
            settings=TransactionSettings(
                transaction_max_timeout_ms=config["transaction.max.timeout.ms"],
                transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
                abort_timed_out_interval_ms=config[
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
                ],
                remove_expired_interval_ms=config[
                    "transaction.remove.expired.transaction.cleanup.interval.ms"
                ],
                two_phase_commit_enable=config["transaction.two.phase.commit.enable"],
            ),
            transaction_version=self._transaction_version,
            partition_count=lambda: self._count(
                TRANSACTION_STATE, "transaction.state.log.num.partitions"
            ),
            partition_log=PartitionCoordinatorLog(TRANSACTION_STATE, node.replicas, node.clock),
            leaders=_MetadataLeaders(node),
            send=self._send,
            allocate_producer_id=node.producer_ids.take,
            loop=node.loop,
            clock=node.clock,
        )
        self.verifier = TransactionVerifier(
            loop=node.loop, coordinator_of=self._transaction_coordinator, send=self._send
        )
        node.replicas.add_listener(self._leadership)

    def _count(self, topic: str, config_name: str) -> int:
        known = self._node.image.topics.by_name.get(topic)
        return len(known.partitions) if known is not None else int(self._node.config[config_name])

    def _transaction_version(self) -> int:
        return int(self._node.image.features.finalized.get("transaction.version", 0))

    def _send(self, node_id: int, api_key: int, request: Any) -> Pending[Any]:
        answer: Pending[Any] = self._node.peers.send(node_id, api_key, request)
        return answer

    def _transaction_coordinator(self, transactional_id: str) -> int | None:
        known = self._node.image.topics.by_name.get(TRANSACTION_STATE)
        if known is None or not known.partitions:
            return None
        partition = known.partitions.get(partition_for(transactional_id, len(known.partitions)))
        return None if partition is None or partition.leader < 0 else int(partition.leader)

    def _leadership(self, partition: Partition, leader_epoch: int | None) -> None:
        """We lead a partition of an internal topic from now on, or no longer."""
        coordinator: Any
        if partition.topic == CONSUMER_OFFSETS:
            coordinator = self.groups
        elif partition.topic == TRANSACTION_STATE:
            coordinator = self.transactions
        else:
            return
        runtime = coordinator.runtime
        if leader_epoch is not None:
            partition.on_high_watermark = runtime.high_watermark_advanced
            load = getattr(coordinator, "load", runtime.load)
            load(partition.index, leader_epoch)
        else:
            partition.on_high_watermark = None
            unload = getattr(coordinator, "unload", runtime.unload)
            unload(partition.index)

    def apply(self, delta: Any) -> None:
        """Committed metadata: deleted topics take their offsets with them."""
        if delta.topics_deleted:
            self.groups.topics_deleted(
                {topic.name: topic_id for topic_id, topic in delta.topics_deleted.items()}
            )

    def close(self) -> None:
        self.groups.runtime.close()
        self.transactions.close()


class _MetadataLeaders:
    """`kwire.coordinator.transaction.markers.Leaders` over the published metadata."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def leader_of(self, topic: str, partition: int) -> int | None:
        known = self._node.image.topics.partition(topic, partition)
        return None if known is None or known.leader < 0 else int(known.leader)

    def exists(self, topic: str, partition: int) -> bool:
        return self._node.image.topics.partition(topic, partition) is not None
