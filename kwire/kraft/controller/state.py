"""The controller's working state and the questions its parts ask of it.

`image` is what has been appended, committed or not (DESIGN.md, decision 9); only
`Controller.replay` changes it and the index derived from it.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.clock import Random
from kwire.config.values import Value
from kwire.kraft.controller.context import ControllerConfig
from kwire.kraft.controller.heartbeats import Heartbeats
from kwire.kraft.controller.partition_index import PartitionIndex
from kwire.kraft.controller.placement import UsableBroker
from kwire.kraft.controller.results import SlicedWork
from kwire.kraft.images.cluster import BrokerImage
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.images.topics import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionImage,
)
from kwire.kraft.metadata_version import MetadataVersion
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""ConfigResource.Type."""

MAX_RECORDS_PER_USER_OPERATION = 10_000
MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ControllerState:
    """Image, indexes and sessions of one controller."""

    def __init__(self, config: ControllerConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.image = MetadataImage()
        self.index = PartitionIndex()
        self.heartbeats = Heartbeats(config.session_timeout_ms)
        self.kraft_version = config.kraft_version
        self.voter_ids = config.voter_ids
        self.begun: list[SlicedWork[None]] = []
        """What has begun and is to go on in slices, though nobody waits for an answer."""

    @property
    def gates(self) -> MetadataVersion:
        return self.image.features.metadata_version

    @property
    def elr_enabled(self) -> bool:
        return self.image.features.elr_enabled

    def random_uuid(self) -> bytes:
        return uuids.random_uuid(self.random)

    # --- brokers ---------------------------------------------------------------------------

    def is_active(self, broker_id: int) -> bool:
        """Registered, unfenced and not shutting down."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def check_epoch(self, broker_id: int, epoch: int) -> BrokerImage:
        """The registration of a broker. Raises KafkaError(STALE_BROKER_EPOCH)."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"No broker registration found for broker id {broker_id}",
            )
        if broker.epoch != epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
            )
        return broker

    def default_directory(self, broker_id: int) -> bytes:
        """Where a new replica of a broker is written down to live."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return UNASSIGNED_DIRECTORY
        if not broker.directories:
            return MIGRATING_DIRECTORY
        if len(broker.directories) == 1:
            return broker.directories[0]
        return UNASSIGNED_DIRECTORY

    def usable_brokers(self) -> list[UsableBroker]:
        """Brokers that may get replicas: not shutting down and not wholly cordoned."""
        usable = []
        for broker_id in sorted(self.image.brokers):
            broker = self.image.brokers[broker_id]
            shutting_down = broker.in_controlled_shutdown and not broker.fenced
            if (
                not broker.has_uncordoned_directory
                or shutting_down
                or self.heartbeats.is_shutting_down(broker_id)
            ):
                continue
            usable.append(UsableBroker(broker_id, broker.rack, broker.fenced))
        return usable

    def acceptor(
        self, partition: PartitionImage, is_acceptable: Callable[[int], bool] | None = None
    ) -> Callable[[int], bool]:
        """Whether a replica may lead: acceptable (by default active) with its directory online."""
        test = is_acceptable or self.is_active

        def accept(broker_id: int) -> bool:
            if not test(broker_id):
                return False
            broker = self.image.brokers.get(broker_id)
            if broker is None or broker_id not in partition.replicas:
                return False
            return broker.has_online_directory(partition.directory(broker_id))

        return accept

    # --- configs ---------------------------------------------------------------------------

    def topic_value(self, topic_name: str, key: str) -> Value:
        """The effective value of a topic's config, typed."""
        configs = self.image.config
        return self.config.rules.topic_value(
            key,
            configs(TOPIC, topic_name),
            configs(BROKER, str(self.config.node_id)),
            configs(BROKER, ""),
        )

    def unclean_election_enabled(self, topic_name: str) -> bool:
        return self.topic_value(topic_name, UNCLEAN_ELECTION) is True

    def min_isr(self, topic_name: str) -> int:
        """min.insync.replicas of a topic as it is set."""
        value = self.topic_value(topic_name, MIN_ISR)
        assert isinstance(value, int)
        return value

    def effective_min_isr(self, topic_name: str) -> int:
        """min.insync.replicas of a topic, at most its replication factor."""
        value = self.min_isr(topic_name)
        first = self.image.topics.partition(topic_name, 0)
        return value if first is None else min(value, len(first.replicas))
