"""The share partitions of a broker, bound to its configs, its partitions and its persister."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.checks import duration_ms
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.types import READ_COMMITTED, READ_UNCOMMITTED
from kwire.node.published import PublishedMetadata
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.server.deadlines import DeadlineHeap

if TYPE_CHECKING:
    from kwire.node.dead_letters import CreateTopics, DeadLetterSettings, GroupDeadLetters, Send
    from kwire.node.group_configs import GroupConfigs
    from kwire.share.manager import SharePartitionManager
    from kwire.share.persister import Persister
    from kwire.share.settings import ShareSettings

GROUPS_REMEMBERED = 10_000
LATEST, EARLIEST = "latest", "earliest"


class Shares:
    """`kwire.server.parts.Shares`: what it holds is made when somebody asks for share groups."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        group_configs: GroupConfigs,
        deadlines: DeadlineHeap,
        replicas: ReplicaManager,
        persister: Callable[[], Persister],
        metadata: PublishedMetadata,
        random: Random,
        send: Send,
        create_topics: CreateTopics,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._config = config
        self._configs = group_configs
        self._deadlines = deadlines
        self._persister = persister
        self._dynamic_config = dynamic_config
        self._replicas = replicas
        self._metadata = metadata
        self._random = random
        self._send = send
        self._create_topics = create_topics
        self._dead_letter_settings: DeadLetterSettings | None = None
        self._dead_letters: GroupDeadLetters | None = None
        self._partitions: SharePartitionManager | None = None
        self._made: dict[str, ShareSettings] = {}  # by owner of the configs
        self._settings_of: dict[str, ShareSettings] = {}  # by group
        self._made_of, self._made_at = 0, 0  # changes of configs, the level of share.version
        replicas.add_listener(self._leadership)

    @property
    def partitions(self) -> SharePartitionManager:
        if self._partitions is None:
            self._partitions = self._make_partitions()
        return self._partitions

    @property
    def made_partitions(self) -> SharePartitionManager | None:
        """None as long as nobody has asked for share groups."""
        return self._partitions

    def _make_partitions(self) -> SharePartitionManager:
        from kwire.share.manager import SharePartitionManager

        self._dead_letters = self._make_dead_letters()
        return SharePartitionManager(
            sessions_max=self._config["group.share.max.share.sessions"],
            persister=self._persister(),
            deadlines=self._deadlines,
            now_ms=lambda: int(self._loop.time() * 1000),
            settings=self._settings,
            reset_offset=self._reset_offset,
            dead_letters=self._dead_letters,
        )

    def _make_dead_letters(self) -> GroupDeadLetters:
        from kwire.node.dead_letters import DeadLetterEffects, DeadLetterSettings, made_dead_letters

        def image() -> MetadataImage:
            return self._metadata.image

        settings = DeadLetterSettings(self._configs, self._dynamic_config, image)
        self._dead_letter_settings = settings
        effects = DeadLetterEffects(
            self._loop,
            self._dynamic_config,
            image,
            self._replicas,
            self._send,
            self._create_topics,
            self._config["request.timeout.ms"],
        )
        return made_dead_letters(
            self._loop,
            self._clock,
            settings,
            effects,
            lambda: self._random.below(1001) / 1000,
        )

    def _settings(self, group_id: str) -> ShareSettings:
        """The group's configs; made once for all groups without configs of their own."""
        level = self._metadata.image.features.finalized.get("share.version", 0)
        if self._configs.changes != self._made_of or level != self._made_at:
            self._made_of, self._made_at = self._configs.changes, level
            self._made.clear()
            self._settings_of.clear()
        settings = self._settings_of.get(group_id)
        if settings is None:
            owner = self._configs.owner(group_id)
            settings = self._made.get(owner)
            if settings is None:
                settings = self._made[owner] = self._made_settings(group_id)
            if len(self._settings_of) >= GROUPS_REMEMBERED:
                self._settings_of.clear()
            self._settings_of[group_id] = settings
        return settings

    def _made_settings(self, group_id: str) -> ShareSettings:
        from kwire.share.settings import ShareSettings

        value = self._configs.value
        is_committed = value(group_id, "share.isolation.level") == "read_committed"
        return ShareSettings(
            lock_duration_ms=value(group_id, "share.record.lock.duration.ms"),
            delivery_count_limit=value(group_id, "share.delivery.count.limit"),
            record_locks_max=value(group_id, "share.partition.max.record.locks"),
            isolation_level=READ_COMMITTED if is_committed else READ_UNCOMMITTED,
            reset=value(group_id, "share.auto.offset.reset"),
            may_renew=value(group_id, "share.renew.acknowledge.enable"),
            has_dead_letters=(
                self._dead_letter_settings is not None
                and self._dead_letter_settings.has_dead_letters(group_id)
            ),
        )

    def _reset_offset(self, partition: Partition, reset: str) -> int:
        log = partition.leader_log()
        if reset == EARLIEST:
            return log.log_start_offset
        if reset != LATEST:
            age_ms = duration_ms(reset.partition(":")[2])
            assert age_ms is not None, "a group's config is checked when it is set"
            found = log.offset_for_timestamp(max(0, self._clock.wall_ms() - age_ms))
            if found is not None and found.offset < log.high_watermark:
                return found.offset
        return log.high_watermark

    def state_replaced(self, group_id: str, topic_id: bytes, index: int) -> None:
        """The state of a share partition was deleted, or begins anew."""
        if self._partitions is not None:
            self._partitions.state_replaced(group_id, topic_id, index)

    def _leadership(self, partition: Partition, leader_epoch: int | None) -> None:
        if self._partitions is not None:
            self._partitions.leadership_changed(partition)

    def close(self) -> None:
        """The node stops. Share partitions end first: dead letters that are on their way are the
        next leader's to write, and nobody is to archive their records."""
        if self._partitions is not None:
            self._partitions.close()
        if self._dead_letters is not None:
            self._dead_letters.close()
