"""The coordinators of a broker, bound to its partitions, its metadata and its peers.

Each is made when it is first needed: at the first partition that it leads, or the first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.api.shared.auto_create import CONSUMER_OFFSETS, TRANSACTION_STATE
from kwire.coordinator.coordinator_log import PartitionCoordinatorLog
from kwire.coordinator.partitioner import partition_for
from kwire.pending import Pending
from kwire.protocol.api_keys import ApiKey
from kwire.replica.partition import Partition

if TYPE_CHECKING:
    from kwire.api.shared.local_transactions import LocalTransactions
    from kwire.coordinator.group.coordinator import GroupCoordinator
    from kwire.coordinator.loading import Worker
    from kwire.coordinator.transaction.service import TransactionCoordinator
    from kwire.coordinator.transaction.verifier import TransactionVerifier


class Coordinators:
    """Loads and unloads coordinators as the leadership of their partitions moves."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._verifier: TransactionVerifier | None = None
        self._group_configs: Any = None
        self._local_transactions: LocalTransactions | None = None
        self._loader: Any = None
        node.replicas.add_listener(self._leadership)

    # -- made when needed

    @property
    def groups(self) -> GroupCoordinator:
        if self._groups is None:
            self._groups = self._make_groups()
        return self._groups

    @property
    def transactions(self) -> TransactionCoordinator:
        if self._transactions is None:
            self._transactions = self._make_transactions()
        return self._transactions

    @property
    def verifier(self) -> TransactionVerifier:
        """Asks coordinators about transactional writes."""
        if self._verifier is None:
            from kwire.coordinator.transaction.verifier import TransactionVerifier

            self._verifier = TransactionVerifier(
                loop=self._node.loop,
                coordinator_of=self._transaction_coordinator,
                send=lambda node_id, request: self._send(
                    node_id, ApiKey.ADD_PARTITIONS_TO_TXN, request
                ),
                local=self._local,
            )
        return self._verifier

    @property
    def _local(self) -> LocalTransactions:
        if self._local_transactions is None:
            from kwire.api.shared.local_transactions import LocalTransactions

            self._local_transactions = LocalTransactions(self._node.broker_id, self._node.parts)
        return self._local_transactions

    def _make_groups(self) -> GroupCoordinator:
        from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
        from kwire.coordinator.group.coordinator import GroupCoordinator
        from kwire.coordinator.group.settings import GroupSettings
        from kwire.node.group_metadata import GroupConfigs, PublishedTopics

        node = self._node
        config = node.config
        self._group_configs = GroupConfigs(node.dynamic_config)
        return GroupCoordinator(
            settings=GroupSettings.from_config(config.__getitem__),
            partition_log=PartitionCoordinatorLog(CONSUMER_OFFSETS, node.replicas, node.clock),
            loop=node.loop,
            clock=node.clock,
            random=node.random,
            partition_count=lambda: self._count(CONSUMER_OFFSETS, "offsets.topic.num.partitions"),
            consumer_settings=ConsumerGroupSettings(
                max_size=config["group.consumer.max.size"],
                assignors=tuple(config["group.consumer.assignors"]),
                regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
                migration_policy=config["group.consumer.migration.policy"].lower(),
            ),
            topics=PublishedTopics(lambda: node.image),
            worker=self._worker(),
            group_config=self._group_configs.value,
        )

    def _make_transactions(self) -> TransactionCoordinator:
        from kwire.coordinator.transaction.service import TransactionCoordinator
        from kwire.coordinator.transaction.shard import TransactionSettings

        node = self._node
        config = node.config
        return TransactionCoordinator(
            settings=TransactionSettings(
                transaction_max_timeout_ms=config["transaction.max.timeout.ms"],
                transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
                abort_timed_out_interval_ms=config[
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
                ],
                remove_expired_interval_ms=config[
                    "transaction.remove.expired.transaction.cleanup.interval.ms"
                ],
            ),
            transaction_version=self._transaction_version,
            partition_count=lambda: self._count(
                TRANSACTION_STATE, "transaction.state.log.num.partitions"
            ),
            partition_log=PartitionCoordinatorLog(TRANSACTION_STATE, node.replicas, node.clock),
            leaders=_MetadataLeaders(node),
            send_markers=lambda node_id, request: self._send(
                node_id, ApiKey.WRITE_TXN_MARKERS, request
            ),
            allocate_producer_id=node.producer_ids.take,
            loop=node.loop,
            clock=node.clock,
            local=self._local,
            worker=self._worker(),
        )

    def _worker(self) -> Worker:
        """A thread that loads, for all coordinators."""
        from kwire.coordinator.loading import Worker

        if self._loader is None:
            self._loader = self._node.workers.scheduler("kwire-coordinator")
        return Worker(self._loader.run, lambda: self._node.random.random_bytes(16))

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
        groups = self._groups
        if groups is None:
            return
        if delta.configs:
            self._group_configs.changed()
        if delta.partitions:
            groups.topics_changed()
        if delta.topics_deleted:
            groups.topics_deleted(
                {topic.name: topic_id for topic_id, topic in delta.topics_deleted.items()}
            )

    def close(self) -> None:
        if self._groups is not None:
            self._groups.runtime.close()
        if self._transactions is not None:
            self._transactions.close()


class _MetadataLeaders:
    """`kwire.coordinator.transaction.markers.Leaders` over the published metadata."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def leader_of(self, topic: str, partition: int) -> int | None:
        known = self._node.image.topics.partition(topic, partition)
        return None if known is None or known.leader < 0 else int(known.leader)

    def exists(self, topic: str, partition: int) -> bool:
        return self._node.image.topics.partition(topic, partition) is not None
