"""The partitions of this node: metadata in, logs and leaderships out.

`apply(delta, image)` is called with every committed change of the metadata: it creates the logs of
new replicas, makes them leader or follower, and deletes what left. Listeners hear about leaderships
won and lost in the order of the changes (coordinators load and unload by them). A change of many
partitions is done in slices, so that no turn of the loop takes long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from kwire.log.directories.manager import LogManager
from kwire.log.directories.placement import assigned
from kwire.log.directories.shortages import error_text
from kwire.log.files import passes
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.replica.state import (
    AdvanceHighWatermark,
    AlterIsr,
    Assigned,
    BecomeFollower,
    BecomeLeader,
    Effect,
    Removed,
    ReplicaState,
    StopReplica,
    Tick,
)
from kwire.replica.traffic import TopicTraffic

logger = logging.getLogger(__name__)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

SLICE_COST = 100
"""A slice of `apply`: 10 new logs of about 0.5 ms each, or 100 partitions that only change."""
NEW_LOG_COST = 10
WALK_COST = 5_000
STEP_COST = 20
"""A slice of what is done with all partitions: 500 that are looked into, or 10,000 passed over."""

LeadershipListener = Callable[[Partition, int | None], None]
"""`listener(partition, leader_epoch)`: we lead at this epoch, or no longer (None)."""


class RegisteredBroker(Protocol):
    """A broker as the metadata has it."""

    @property
    def epoch(self) -> int: ...

    @property
    def is_active(self) -> bool:
        """Neither fenced nor on its way out."""
        ...


class Assignment(Protocol):
    """Who replicates and leads a partition, as the metadata has it."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def directories(self) -> tuple[bytes, ...]: ...


class PartitionChange(Protocol):
    """A partition in a change of the metadata; `new` is None when it is gone."""

    @property
    def topic_name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def index(self) -> int: ...
    @property
    def new(self) -> Assignment | None: ...


class MetadataChange(Protocol):
    """What replicas look at of a change of the metadata; configs by resource type and name."""

    @property
    def partitions(self) -> Mapping[tuple[bytes, int], PartitionChange]: ...
    @property
    def configs(self) -> Iterable[tuple[int, str]]: ...


class Metadata(Protocol):
    """What replicas look at of the metadata."""

    @property
    def brokers(self) -> Mapping[int, RegisteredBroker]: ...


class Followers(Protocol):
    """What fetches for the partitions that are led elsewhere (`fetchers.py`)."""

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None: ...

    def forget(self, partition: Partition) -> None: ...


class IsrChanges(Protocol):
    """What asks the controller for another ISR (`isr_changes.py`)."""

    def submit(self, partition: Partition, wanted: AlterIsr) -> None: ...


class ReplicaManager:
    """Hosted partitions by (topic id, index) and by (name, index).

    `topic_config(name)` resolves a topic's LogConfig from the newest configs.
    """

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        topic_config: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
        lag_time_max_ms: int = 30_000,
    ) -> None:
        self.broker_id = broker_id
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self.by_name: dict[tuple[str, int], Partition] = {}
        self._in_order: list[Partition] | None = None  # all; listed anew after one has gone
        self._log_manager = log_manager
        self._topic_config = topic_config
        self._now_ms = now_ms
        self._lag_time_max_ms = lag_time_max_ms
        self._listeners: list[LeadershipListener] = []
        self._brokers: Mapping[int, RegisteredBroker] = {}
        self._leaving: set[tuple[bytes, int]] = set()  # deleted, but still to be removed
        self.traffic = TopicTraffic()
        self.slice_cost = SLICE_COST
        self.followers: Followers | None = None
        self.isr_changes: IsrChanges | None = None

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.by_id.values())

    def add_listener(self, listener: LeadershipListener) -> None:
        """Hear about leaderships from now on."""
        self._listeners.append(listener)

    def partition(self, topic: str, index: int) -> Partition | None:
        """A hosted partition by its topic's name."""
        return self.by_name.get((topic, index))

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """A hosted partition by its topic's id."""
        return self.by_id.get((topic_id, index))

    # -- metadata

    def forget_names(self, delta: MetadataChange) -> None:
        """What a change deletes is not found by its name from now on, `apply` removes it later: a
        topic of the same name may be there before that, and is another one."""
        for key, change in delta.partitions.items():
            if change.new is None:
                self._leaving.add(key)
                known = self.by_name.get((change.topic_name, change.index))
                if known is not None and known.topic_id == change.topic_id:
                    known.disturb()
                    del self.by_name[change.topic_name, change.index]

    def apply(self, delta: MetadataChange, image: Metadata) -> Iterator[None]:
        """Follow a committed change of the metadata, in slices; the next one comes behind it."""
        self._brokers = image.brokers
        yield from self._change(delta.partitions.values())
        if delta.configs:
            is_of_all = any(kind == BROKER_RESOURCE for kind, _ in delta.configs)
            named = {name for kind, name in delta.configs if kind == TOPIC_RESOURCE}
            yield from self.configure(None if is_of_all else named)

    def _change(self, partitions: Collection[PartitionChange]) -> Iterator[None]:
        if not partitions:
            return
        changes = sorted(partitions, key=lambda change: (change.topic_name, change.index))
        changes.sort(key=lambda change: change.new is not None)  # what is gone first
        cost = 0
        for change in changes:
            if cost >= self.slice_cost:
                yield
                cost = 0
            if change.new is None:
                self._remove(change.topic_id, change.index)
                cost += 1
            elif self._assign(change.topic_name, change.topic_id, change.index, change.new):
                cost += NEW_LOG_COST
            else:
                cost += 1

    def configure(self, topics: Collection[str] | None) -> Iterator[None]:
        """Hand the newest configs of these topics, or of all, to the logs of their partitions; some
        a slice."""
        newest: dict[str, LogConfig] = {}
        cost = 0
        if self._in_order is None:
            self._in_order = list(self)
        for partition in self._in_order:
            if cost >= WALK_COST:
                yield
                cost = 0
            topic = partition.topic
            if partition.log is None or (topics is not None and topic not in topics):
                cost += 1
                continue
            cost += STEP_COST
            config = newest.get(topic)
            if config is None:
                config = newest[topic] = self._topic_config(topic)
            if config is not partition.log.config:
                partition.log.reconfigure(config)
            partition.configured()

    def tick(self) -> Iterator[None]:
        """Drop from the ISRs whoever has not caught up in time (twice in each lag time); some
        partitions a slice. Who is alone in an ISR stays in it."""
        cost = 0
        for partition in list(self):
            if cost >= WALK_COST:
                yield
                cost = 0
            if len(partition.state.isr) > 1 and partition.is_leader and partition.log is not None:
                partition.step(Tick())
                cost += STEP_COST
            else:
                cost += 1

    def _is_eligible(self, replica_id: int, replica_epoch: int) -> bool:
        broker = self._brokers.get(replica_id)
        return broker is not None and broker.is_active and replica_epoch in (-1, broker.epoch)

    def _assign(self, topic: str, topic_id: bytes, index: int, new: Assignment) -> bool:
        """Take up the role that a partition gives us; whether it is new here."""
        partition = self.by_id.get((topic_id, index))
        is_new = partition is None
        if partition is None:
            if self.broker_id not in new.replicas or (topic_id, index) in self._leaving:
                return False
            state = ReplicaState(self.broker_id, self._lag_time_max_ms, self._is_eligible)
            partition = Partition(topic, topic_id, index, state)
            partition.traffic = self.traffic.of(topic)
            partition.now_ms = self._now_ms
            partition.on_effects = self._stepped
            self._open_log(partition, new.directories[new.replicas.index(self.broker_id)])
            if self._in_order is not None:
                self._in_order.append(partition)
            self.by_id[topic_id, index] = partition
            self.by_name[topic, index] = partition
        log = partition.log
        if log is not None and new.leader_epoch != partition.leader_epoch:
            self._settle(partition, log)
        assignment = Assigned(
            leader_id=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
            replicas=new.replicas,
            isr=new.isr,
            log_end_offset=0 if log is None else log.log_end_offset,
            next_offset=0 if log is None else log.next_offset,
        )
        was_leader = partition.is_leader
        effects = partition.assign(assignment, self._now_ms())
        self._perform(partition, effects, was_leader)
        return is_new

    def _open_log(self, partition: Partition, directory_id: bytes) -> None:
        try:
            log = self._log_manager.get(partition.topic, partition.index)
            if log is None:
                log = self._log_manager.create(
                    partition.topic,
                    partition.index,
                    partition.topic_id,
                    self._topic_config(partition.topic),
                    directory=assigned(self._log_manager.directories, directory_id),
                )
        except (KafkaError, OSError) as error:
            shortages = self._log_manager.shortages
            if (partition.topic, partition.index) not in shortages:
                logger.error("no log for %s-%d: %s", partition.topic, partition.index, error)
            if passes(error):
                shortages.add(
                    (partition.topic, partition.index),
                    error_text(error),
                    lambda: self._open_again(partition, directory_id),
                )
            return
        partition.log_opened(log)

    def _open_again(self, partition: Partition, directory_id: bytes) -> Pending[None]:
        """A shortage kept a new replica from having a log: try again, and take up its role."""
        if self.by_id.get((partition.topic_id, partition.index)) is not partition:
            return Pending.completed(None)
        if partition.log is None:
            self._open_log(partition, directory_id)
        if partition.log is None:
            return Pending.failed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        state = partition.state
        effect: Effect | None = None
        if partition.is_leader:
            effect = BecomeLeader(state.leader_epoch)
        elif state.leader_id >= 0:
            effect = BecomeFollower(state.leader_id, state.leader_epoch)
        self._perform(partition, [] if effect is None else [effect], False)
        return Pending.completed(None)

    def _settle(self, partition: Partition, log: PartitionLog) -> None:
        """What is still being written belongs to the epoch that ends."""
        try:
            log.settle()
        except (KafkaError, OSError) as error:
            logger.error("%s cannot be written: %s", partition, error)

    def _perform(self, partition: Partition, effects: list[Effect], was_leader: bool) -> None:
        followers = self.followers
        for effect in effects:
            match effect:
                case BecomeLeader():
                    if followers is not None:
                        followers.forget(partition)
                    if partition.log is not None:
                        partition.log.assign_epoch(effect.leader_epoch)
                        if partition.log.log_end_offset > partition.state.log_end_offset:
                            partition.taken_over()  # lost offsets are not given anew
                    self._notify(partition, effect.leader_epoch)
                case AdvanceHighWatermark():
                    if partition.log is not None:
                        partition.advance_high_watermark(effect.offset)
                case BecomeFollower():
                    if was_leader:
                        self._notify(partition, None)
                    if followers is not None:
                        followers.follow(partition, effect.leader_id, effect.leader_epoch)
                case StopReplica():
                    self._remove(partition.topic_id, partition.index)

    def _stepped(self, partition: Partition, effects: list[Effect]) -> None:
        """What a partition's own steps ask of others."""
        for effect in effects:
            if type(effect) is AlterIsr and self.isr_changes is not None:
                self.isr_changes.submit(partition, effect)

    def _notify(self, partition: Partition, leader_epoch: int | None) -> None:
        for listener in self._listeners:
            listener(partition, leader_epoch)

    def _remove(self, topic_id: bytes, index: int) -> None:
        self._leaving.discard((topic_id, index))
        partition = self.by_id.pop((topic_id, index), None)
        if partition is None:
            return
        self._in_order = None
        partition.disturb()
        if self.followers is not None:
            self.followers.forget(partition)
        if self.by_name.get((partition.topic, index)) is partition:
            del self.by_name[partition.topic, index]
        self.traffic.left(partition.topic)
        was_leader = partition.is_leader
        partition.step(Removed())
        if was_leader:
            self._notify(partition, None)
        log, partition.log = partition.log, None
        self._log_manager.shortages.remove((partition.topic, partition.index))
        partition.end_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if log is not None:
            self._log_manager.delete(partition.topic, index)

    def close(self) -> None:
        """Nobody waits any more; the logs are closed by their manager."""
        for partition in list(self):
            if self.followers is not None:
                self.followers.forget(partition)
            partition.end_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
