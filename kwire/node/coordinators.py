"""The coordinators of a broker, bound to its partitions, its metadata and its peers.

Each is made when it is first needed: at the first partition that it leads, or the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kwire.api.shared.auto_create import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.coordinator.coordinator_log import PartitionCoordinatorLog
from kwire.coordinator.partitioner import partition_for
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.scheduling import Scheduler
from kwire.network.peer import PeerNetwork
from kwire.node.group_configs import GroupConfigs
from kwire.node.published import PublishedMetadata
from kwire.node.publishing import AT_ONCE_PARTITIONS_MAX
from kwire.node.shares import Shares
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.server.deadlines import DeadlineHeap

if TYPE_CHECKING:
    from kwire.api.shared.local_transactions import LocalTransactions
    from kwire.coordinator.group.coordinator import GroupCoordinator
    from kwire.coordinator.loading import Worker
    from kwire.coordinator.share.service import ShareCoordinator
    from kwire.coordinator.transaction.service import TransactionCoordinator
    from kwire.coordinator.transaction.verifier import TransactionVerifier
    from kwire.share.coordinator_persister import CoordinatorPersister

Response = TypeVar("Response", bound=Message)


class _MarkerParts(NamedTuple):
    """What the markers of transactions are written with in this process."""

    clock: Clock
    coordinators: Coordinators
    metadata: PublishedMetadata
    replicas: ReplicaManager


class Coordinators:
    """Loads and unloads coordinators as the leadership of their partitions moves."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        random: Random,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        *,
        metadata: PublishedMetadata,
        replicas: ReplicaManager,
        peers: PeerNetwork,
        deadlines: DeadlineHeap,
        allocate_producer_id: Callable[[], Pending[int]],
        checkpoint_log_starts: Callable[[list[tuple[str, int]]], Pending[None]],
        create_topic: Callable[[str], object],
        create_topics: Callable[[m.CreateTopicsRequest], Pending[m.CreateTopicsResponse]],
        new_scheduler: Callable[[str], Scheduler],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._random = random
        self._config = config
        self._dynamic_config = dynamic_config
        self._metadata = metadata
        self._replicas = replicas
        self._peers = peers
        self._allocate_producer_id = allocate_producer_id
        self._checkpoint_log_starts = checkpoint_log_starts
        self._create_topic = create_topic
        self._new_scheduler = new_scheduler
        self._groups: GroupCoordinator | None = None
        self._group_configs = GroupConfigs(dynamic_config)
        self._transactions: TransactionCoordinator | None = None
        self._share: ShareCoordinator | None = None
        self._persister: CoordinatorPersister | None = None
        self._verifier: TransactionVerifier | None = None
        self._local_transactions: LocalTransactions | None = None
        self._loader: Scheduler | None = None
        replicas.add_listener(self._leadership)
        self.shares = Shares(
            loop,
            clock,
            config,
            dynamic_config,
            self._group_configs,
            deadlines,
            replicas,
            lambda: self.persister,
            metadata,
            random,
            self._send,
            create_topics,
        )

    # -- made so far

    @property
    def made_groups(self) -> GroupCoordinator | None:
        """None as long as nobody has asked for groups."""
        return self._groups

    @property
    def made_transactions(self) -> TransactionCoordinator | None:
        """None as long as nobody has asked for transactions."""
        return self._transactions

    @property
    def made_share(self) -> ShareCoordinator | None:
        """None as long as nobody has asked for the state of share groups."""
        return self._share

    @property
    def made_verifier(self) -> TransactionVerifier | None:
        """None as long as no transactional write was to be verified."""
        return self._verifier

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
    def share(self) -> ShareCoordinator:
        if self._share is None:
            self._share = self._make_share()
        return self._share

    @property
    def persister(self) -> CoordinatorPersister:
        """Asks share coordinators, this broker's and others'."""
        if self._persister is None:
            from kwire.node.share_coordinators import PublishedShareCoordinators
            from kwire.share.coordinator_persister import CoordinatorPersister

            self._persister = CoordinatorPersister(
                loop=self._loop,
                coordinators=PublishedShareCoordinators(
                    self._config.node_id, self._metadata, lambda: self.share, self._create_topic
                ),
                send=self._send,
                draw=lambda: self._random.below(1001) / 1000,
                replaced=self.shares.state_replaced,
            )
        return self._persister

    @property
    def verifier(self) -> TransactionVerifier:
        """Asks coordinators about transactional writes."""
        if self._verifier is None:
            from kwire.coordinator.transaction.verifier import TransactionVerifier

            self._verifier = TransactionVerifier(
                loop=self._loop,
                coordinator_of=self._transaction_coordinator,
                send=self._send,
                local=self._local,
            )
        return self._verifier

    @property
    def _local(self) -> LocalTransactions:
        if self._local_transactions is None:
            from kwire.api.shared.local_transactions import LocalTransactions

            parts = _MarkerParts(self._clock, self, self._metadata, self._replicas)
            self._local_transactions = LocalTransactions(self._config.node_id, parts)
        return self._local_transactions

    def _make_groups(self) -> GroupCoordinator:
        from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
        from kwire.coordinator.group.coordinator import GroupCoordinator
        from kwire.coordinator.group.settings import GroupSettings
        from kwire.coordinator.group.share.settings import ShareGroupSettings
        from kwire.node.group_metadata import PublishedTopics
        from kwire.node.latest_offsets import LatestOffsets

        config = self._config
        return GroupCoordinator(
            settings=GroupSettings.from_config(config.__getitem__),
            partition_log=PartitionCoordinatorLog(CONSUMER_OFFSETS, self._replicas, self._clock),
            loop=self._loop,
            clock=self._clock,
            random=self._random,
            partition_count=lambda: self._count(CONSUMER_OFFSETS, "offsets.topic.num.partitions"),
            consumer_settings=ConsumerGroupSettings(
                max_size=config["group.consumer.max.size"],
                assignors=tuple(config["group.consumer.assignors"]),
                regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
                migration_policy=config["group.consumer.migration.policy"].lower(),
                has_authorizer=bool(config["authorizer.class.name"]),
            ),
            topics=PublishedTopics(self._metadata),
            worker=self._worker(),
            group_config=self._group_configs.value,
            share_settings=ShareGroupSettings(
                max_size=config["group.share.max.size"],
                initialize_retry_interval_ms=config["group.share.initialize.retry.interval.ms"],
            ),
            persister=lambda: self.persister,
            latest_offsets=LatestOffsets(
                config.node_id,
                lambda: self._metadata.image,
                self._replicas.partition,
                self._send,
            ).of,
        )

    def _make_transactions(self) -> TransactionCoordinator:
        from kwire.coordinator.transaction.service import TransactionCoordinator
        from kwire.coordinator.transaction.shard import TransactionSettings

        config = self._config
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
            partition_log=PartitionCoordinatorLog(TRANSACTION_STATE, self._replicas, self._clock),
            leaders=_MetadataLeaders(self._metadata),
            send_markers=self._send,
            allocate_producer_id=self._allocate_producer_id,
            loop=self._loop,
            clock=self._clock,
            local=self._local,
            worker=self._worker(),
        )

    def _make_share(self) -> ShareCoordinator:
        from kwire.coordinator.share.service import ShareCoordinator
        from kwire.coordinator.share.shard import ShareCoordinatorSettings

        config = self._config
        return ShareCoordinator(
            settings=ShareCoordinatorSettings(
                snapshot_update_records_per_snapshot=config[
                    "share.coordinator.snapshot.update.records.per.snapshot"
                ],
                cold_partition_snapshot_interval_ms=config[
                    "share.coordinator.cold.partition.snapshot.interval.ms"
                ],
                prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
                write_timeout_ms=config["share.coordinator.write.timeout.ms"],
                load_buffer_bytes=config["share.coordinator.load.buffer.size"],
                append_linger_ms=config["share.coordinator.append.linger.ms"],
            ),
            partition_count=lambda: self._count(
                SHARE_GROUP_STATE, "share.coordinator.state.topic.num.partitions"
            ),
            partitions_of=self._partitions_of,
            has_all_of=self._metadata.has_all_of,
            partition_log=PartitionCoordinatorLog(SHARE_GROUP_STATE, self._replicas, self._clock),
            delete_records=self._delete_share_records,
            is_enabled=lambda: self._metadata.image.features.finalized.get("share.version", 0) >= 1,
            loop=self._loop,
            clock=self._clock,
            worker=self._worker(),
        )

    def _partitions_of(self, topic_id: bytes) -> int | None:
        topic = self._metadata.image.topics.by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    def _delete_share_records(self, index: int, offset: int) -> Pending[None]:
        """Move the start of a partition of `__share_group_state`."""
        partition = self._replicas.partition(SHARE_GROUP_STATE, index)
        if partition is None:
            return Pending.failed(KafkaError(ErrorCode.NOT_COORDINATOR))
        try:
            partition.leader_log().delete_records_before(offset)
        except KafkaError as error:
            return Pending.failed(error)
        partition.wake_readers(0)
        return self._checkpoint_log_starts([(SHARE_GROUP_STATE, index)])

    def _worker(self) -> Worker:
        """A thread that loads, for all coordinators."""
        from kwire.coordinator.loading import Worker

        if self._loader is None:
            self._loader = self._new_scheduler("kwire-coordinator")
        return Worker(self._loader.run, lambda: self._random.random_bytes(16))

    def _count(self, topic: str, config_name: str) -> int:
        known = self._metadata.image.topics.by_name.get(topic)
        return len(known.partitions) if known is not None else int(self._config[config_name])

    def _transaction_version(self) -> int:
        return self._metadata.image.features.finalized.get("transaction.version", 0)

    def _send(self, node_id: int, request: Request[Response]) -> Pending[Response]:
        return self._peers.send(node_id, request.API_KEY, request)

    def _transaction_coordinator(self, transactional_id: str) -> int | None:
        known = self._metadata.image.topics.by_name.get(TRANSACTION_STATE)
        if known is None or not known.partitions:
            return None
        partition = known.partitions.get(partition_for(transactional_id, len(known.partitions)))
        return None if partition is None or partition.leader < 0 else partition.leader

    def _leadership(self, partition: Partition, leader_epoch: int | None) -> None:
        """We lead a partition of an internal topic from now on, or no longer."""
        if partition.topic == CONSUMER_OFFSETS:
            runtime = self.groups.runtime
            load, unload = runtime.load, runtime.unload
            advanced = runtime.high_watermark_advanced
        elif partition.topic == TRANSACTION_STATE:
            load, unload = self.transactions.load, self.transactions.unload
            advanced = self.transactions.runtime.high_watermark_advanced
        elif partition.topic == SHARE_GROUP_STATE:
            load, unload = self.share.load, self.share.unload
            advanced = self.share.runtime.high_watermark_advanced
        else:
            return
        if leader_epoch is not None:
            partition.on_high_watermark = advanced
            load(partition.index, leader_epoch)
        else:
            partition.on_high_watermark = None
            unload(partition.index)

    def published(self, delta: MetadataDelta, image: MetadataImage) -> Iterator[None]:
        """Committed metadata: deleted topics take with them what groups had of them."""
        if delta.configs:
            self._group_configs.changed()
        if self._share is not None and delta.topics_deleted:
            self._share.topics_deleted(delta.topics_deleted)
        if self._persister is not None and delta.partitions:
            self._persister.coordinators_changed()
        groups = self._groups
        if groups is None or not (delta.partitions or delta.topics_deleted):
            return
        deleted = {topic.name: topic_id for topic_id, topic in delta.topics_deleted.items()}
        at_once = len(delta.partitions) <= AT_ONCE_PARTITIONS_MAX
        for _ in groups.follow_topics(deleted):
            if not at_once:
                yield

    def close(self) -> None:
        self.shares.close()
        if self._groups is not None:
            self._groups.runtime.close()
        if self._transactions is not None:
            self._transactions.close()
        if self._persister is not None:
            self._persister.close()
        if self._share is not None:
            self._share.close()


class _MetadataLeaders:
    """`kwire.coordinator.transaction.markers.Leaders` over the published metadata."""

    def __init__(self, metadata: PublishedMetadata) -> None:
        self._metadata = metadata

    def leader_of(self, topic: str, partition: int) -> int | None:
        known = self._metadata.image.topics.partition(topic, partition)
        return None if known is None or known.leader < 0 else known.leader

    def exists(self, topic: str, partition: int) -> bool:
        return self._metadata.image.topics.partition(topic, partition) is not None
