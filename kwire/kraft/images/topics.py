"""Topics and partitions of the metadata image.

Replays TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord and ClearElrRecord
as Kafka 4.4 does. A partition is an immutable value: a change makes a new one, so that whoever
compares old and new (deltas, the controller's indexes) may keep both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kwire.kraft.images.errors import ImageError
from kwire.kraft.metadata_version import MetadataVersion
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.metadata_records import VersionedRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
RECOVERED = 0
RECOVERING = 1

VALUES_MAX = 1000
"""Values of partitions that are known, so that equal ones are one object."""

MIGRATING_DIRECTORY = bytes(16)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
LOST_DIRECTORY = bytes(15) + b"\x02"
"""Reserved directory ids (KIP-858); a partition written before directories has MIGRATING."""


def is_reserved_directory(directory: bytes) -> bool:
    """Whether this is one of Kafka's 100 reserved ids, which no directory may have."""
    return directory[:15] == bytes(15) and directory[15] < 100


class PartitionImage(NamedTuple):
    """One partition: who holds it and who leads it."""

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int

    @property
    def preferred_replica(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == self.preferred_replica

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    def directory(self, broker_id: int) -> bytes:
        """The directory of a replica. Raises ImageError for a broker that holds none."""
        for replica, directory in zip(self.replicas, self.directories):
            if replica == broker_id:
                return directory
        raise ImageError(f"broker {broker_id} is not a replica of {self.replicas}")

    def merge(self, change: m.PartitionChangeRecord) -> PartitionImage:
        """This partition after a PartitionChangeRecord.

        The partition epoch grows by one with every change, the leader epoch with every change
        that names a leader, also the same one again.
        """
        # A start replays hundreds of thousands of these: what a change leaves alone costs nothing.
        changed = change.tagged.get
        replicas = _changed(changed("replicas"), self.replicas)
        named: list[bytes] | None = changed("directories")
        if named is not None:
            directories = checked_directories(named, len(replicas))
        elif replicas == self.replicas:
            directories = self.directories
        else:
            # Before directories were recorded (metadata.version below 3.7-IV2) all are MIGRATING.
            known = dict(zip(self.replicas, self.directories))
            before = all(directory == MIGRATING_DIRECTORY for directory in self.directories)
            unknown = MIGRATING_DIRECTORY if before else UNASSIGNED_DIRECTORY
            directories = tuple(known.get(replica, unknown) for replica in replicas)
        leader, leader_epoch = self.leader, self.leader_epoch
        new_leader = changed("leader", NO_LEADER_CHANGE)
        if new_leader != NO_LEADER_CHANGE:
            leader, leader_epoch = new_leader, leader_epoch + 1
        recovery = changed("leader_recovery_state", NO_RECOVERY_CHANGE)
        return PartitionImage(
            replicas,
            directories,
            _changed(changed("isr"), self.isr),
            _changed(changed("removing_replicas"), self.removing),
            _changed(changed("adding_replicas"), self.adding),
            _changed(changed("eligible_leader_replicas"), self.elr),
            _changed(changed("last_known_elr"), self.last_known_elr),
            leader,
            leader_epoch,
            self.partition_epoch + 1,
            self.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        )

    def to_record(self, topic_id: bytes, index: int, gates: MetadataVersion) -> VersionedRecord:
        """The PartitionRecord that recreates this partition, and its version."""
        version = gates.partition_record
        record = m.PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        if gates.directory_assignment:
            record.directories = list(self.directories)
        if gates.elr:
            if self.elr:
                record.eligible_leader_replicas = list(self.elr)
            if self.last_known_elr:
                record.last_known_elr = list(self.last_known_elr)
        return record, version


def _changed(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def checked_directories(directories: list[bytes] | None, count: int) -> tuple[bytes, ...]:
    """Directories as a tuple, MIGRATING for each of `count` replicas when none were recorded."""
    if not directories:
        return (MIGRATING_DIRECTORY,) * count
    if len(directories) != count:
        raise ImageError(f"{len(directories)} directories for {count} replicas")
    return tuple(directories)


def partition_from_record(record: m.PartitionRecord) -> PartitionImage:
    """The partition that a PartitionRecord (any version) describes."""
    return PartitionImage(
        replicas=tuple(record.replicas),
        directories=checked_directories(record.directories, len(record.replicas)),
        isr=tuple(record.isr),
        removing=tuple(record.removing_replicas or ()),
        adding=tuple(record.adding_replicas or ()),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        leader_recovery_state=record.leader_recovery_state,
    )


class TopicImage:
    """One topic with its partitions by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionImage] = {}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TopicImage)
            and self.name == other.name
            and self.topic_id == other.topic_id
            and self.partitions == other.partitions
        )

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {uuids.to_text(self.topic_id)}, {self.partitions!r})"


class TopicChanges(Protocol):
    """Who is told what a replayed record changed; `old` None is new, `new` None is gone."""

    def topic_created(self, topic: TopicImage) -> None: ...

    def topic_deleted(self, topic: TopicImage) -> None: ...

    def partition_changed(
        self, topic: TopicImage, index: int, old: PartitionImage | None, new: PartitionImage | None
    ) -> None: ...


class TopicsImage:
    """All topics, by name and by id: the same TopicImage objects in both."""

    __slots__ = ("_values", "by_id", "by_name", "partition_count")

    def __init__(self) -> None:
        self.by_name: dict[str, TopicImage] = {}
        self.by_id: dict[bytes, TopicImage] = {}
        self.partition_count = 0
        self._values: dict[PartitionImage, PartitionImage] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicsImage) and self.by_id == other.by_id

    def __iter__(self) -> Iterator[TopicImage]:
        return iter(self.by_name.values())

    def partition(self, name: str, index: int) -> PartitionImage | None:
        """A partition by topic name and index, or None."""
        topic = self.by_name.get(name)
        return None if topic is None else topic.partitions.get(index)

    def replay_topic(self, record: m.TopicRecord, delta: TopicChanges | None) -> None:
        if record.name in self.by_name or record.topic_id in self.by_id:
            raise ImageError(f"second TopicRecord for {record.name}")
        topic = TopicImage(record.name, record.topic_id)
        self.by_name[topic.name] = topic
        self.by_id[topic.topic_id] = topic
        if delta is not None:
            delta.topic_created(topic)

    def replay_partition(self, record: m.PartitionRecord, delta: TopicChanges | None) -> None:
        topic = self._topic(record)
        old = topic.partitions.get(record.partition_id)
        new = self._shared(partition_from_record(record))
        topic.partitions[record.partition_id] = new
        if old is None:
            self.partition_count += 1
        if delta is not None:
            delta.partition_changed(topic, record.partition_id, old, new)

    def replay_partition_change(
        self, record: m.PartitionChangeRecord, delta: TopicChanges | None
    ) -> None:
        topic = self._topic(record)
        old = topic.partitions.get(record.partition_id)
        if old is None:
            raise ImageError(f"change of unknown partition {topic.name}-{record.partition_id}")
        new = self._shared(old.merge(record))
        topic.partitions[record.partition_id] = new
        if delta is not None:
            delta.partition_changed(topic, record.partition_id, old, new)

    def replay_remove(self, record: m.RemoveTopicRecord, delta: TopicChanges | None) -> TopicImage:
        topic = self.by_id.pop(record.topic_id, None)
        if topic is None:
            raise ImageError(f"removal of unknown topic id {uuids.to_text(record.topic_id)}")
        del self.by_name[topic.name]
        self.partition_count -= len(topic.partitions)
        if delta is not None:
            delta.topic_deleted(topic)
        return topic

    def replay_clear_elr(self, record: m.ClearElrRecord, delta: TopicChanges | None) -> None:
        """Forget ELR and last known ELR of one topic, or of all when the name is empty.

        For a partition that has any it is a change like others: its partition epoch grows.
        """
        if record.topic_name:
            named = self.by_name.get(record.topic_name)
            if named is None:
                raise ImageError(f"ClearElrRecord for unknown topic {record.topic_name}")
            topics = [named]
        else:
            topics = list(self.by_name.values())
        for topic in topics:
            for index, old in topic.partitions.items():
                if old.elr or old.last_known_elr:
                    new = old._replace(
                        elr=(), last_known_elr=(), partition_epoch=old.partition_epoch + 1
                    )
                    topic.partitions[index] = new
                    if delta is not None:
                        delta.partition_changed(topic, index, old, new)

    def to_records(self, gates: MetadataVersion) -> Iterator[VersionedRecord]:
        """The records of what there is now, also when they are made later: a partition's image
        never changes, so lists of them are a copy (3 ms for 100,000 partitions)."""
        topics = [
            (name, topic.topic_id, sorted(topic.partitions.items()))
            for name, topic in sorted(self.by_name.items())
        ]
        return _topic_records(topics, gates)

    def _shared(self, partition: PartitionImage) -> PartitionImage:
        """One object for the equal ones: most partitions of many are as hundreds of others."""
        values = self._values
        known = values.setdefault(partition, partition)
        if len(values) > VALUES_MAX:
            values.clear()
        return known

    def _topic(self, record: m.PartitionRecord | m.PartitionChangeRecord) -> TopicImage:
        topic = self.by_id.get(record.topic_id)
        if topic is None:
            raise ImageError(f"partition of unknown topic id {uuids.to_text(record.topic_id)}")
        return topic


def _topic_records(
    topics: list[tuple[str, bytes, list[tuple[int, PartitionImage]]]], gates: MetadataVersion
) -> Iterator[VersionedRecord]:
    for name, topic_id, partitions in topics:
        yield m.TopicRecord(name=name, topic_id=topic_id), 0
        for index, partition in partitions:
            yield partition.to_record(topic_id, index, gates)
