"""What `__consumer_offsets` says of share groups (KIP-932). Only `replay` changes it.

record type -> what it holds of a group (measured on Apache Kafka 4.4):

    10  ShareGroupMemberMetadata            a member's subscription
    11  ShareGroupMetadata                  group epoch, hash of the subscribed topics
    12  ShareGroupTargetAssignmentMetadata  epoch and time of the target assignment
    13  ShareGroupTargetAssignmentMember    a member's target
    14  ShareGroupCurrentMemberAssignment   a member's epoch and partitions
    15  ShareGroupStatePartitionMetadata    the partitions whose state is initialized, or on the way
                                            to it, and the topics whose state is being deleted

A group starts at epoch 1 without a record; the first change makes it 2. One whose offsets were
altered before it had members has nothing but the last record. It goes with the tombstone of
ShareGroupMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kwire.coordinator.group.groups_on_record import GroupsOnRecord
from kwire.protocol import messages as m

NAME = "share"
INITIAL_EPOCH = 1
LEFT_EPOCH = -1

TopicPartitions = dict[bytes, tuple[int, ...]]
T = TypeVar("T")


class Member(NamedTuple):
    """A member's subscription; `topic_names` in ascending order."""

    member_id: str
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]


class Current(NamedTuple):
    """Where a member stands: its epoch, the one before, its partitions."""

    epoch: int
    previous_epoch: int
    assigned: TopicPartitions


JOINING = Current(0, 0, {})


class StateTopic(NamedTuple):
    """Partitions of a topic, in ascending order."""

    name: str
    partitions: tuple[int, ...]


class StatePartitions(NamedTuple):
    """How far the state of the group's partitions is, by topic id; `deleting` has the names."""

    initializing: Mapping[bytes, StateTopic] = {}
    initialized: Mapping[bytes, StateTopic] = {}
    deleting: Mapping[bytes, str] = {}


class ShareGroup:
    """One group. Dictionaries keep the order of the records.

    `subscriptions` has how many members subscribe to a topic, `assigned` how many targets have a
    partition: a heartbeat looks at these, not at every member.
    """

    __slots__ = (
        "assigned",
        "current",
        "epoch",
        "members",
        "metadata_hash",
        "state_partitions",
        "subscriptions",
        "target_epoch",
        "target_ms",
        "targets",
    )

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.target_epoch = INITIAL_EPOCH
        self.target_ms = 0
        self.targets: dict[str, TopicPartitions] = {}
        self.current: dict[str, Current] = {}
        self.subscriptions: dict[str, int] = {}
        self.assigned: dict[bytes, dict[int, int]] = {}
        # None: there is no such record.
        self.state_partitions: StatePartitions | None = None

    def state_name(self) -> str:
        """The group's state by Kafka's name."""
        return "Stable" if self.members else "Empty"

    def where(self, member_id: str) -> Current:
        return self.current.get(member_id, JOINING)

    def topic_names(self, member_id: str, names: Iterable[str]) -> list[str]:
        """The topics of all members, ascending, with `names` as those of one of them."""
        before = self.members.get(member_id)
        known = () if before is None else before.topic_names
        if names == known:
            return sorted(self.subscriptions)
        counts = dict(self.subscriptions)
        _count(counts, known, -1)
        _count(counts, names, 1)
        return sorted(counts)

    def initialized(self) -> Mapping[bytes, StateTopic]:
        """The partitions that may be assigned, by topic id."""
        return {} if self.state_partitions is None else self.state_partitions.initialized

    # --- replay ---

    def replay(self, record_type: int | None, key: Any, value: Any) -> None:
        """Apply one record of this group: messages of that type."""
        _REPLAYERS[record_type](self, key, value)

    def _member(
        self, key: m.ShareGroupMemberMetadataKey, value: m.ShareGroupMemberMetadataValue | None
    ) -> None:
        before = self.members.get(key.member_id)
        if before is not None:
            _count(self.subscriptions, before.topic_names, -1)
        if value is None:
            self.members.pop(key.member_id, None)
            return
        self.members[key.member_id] = member = Member(
            member_id=key.member_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=tuple(sorted(value.subscribed_topic_names)),
        )
        _count(self.subscriptions, member.topic_names, 1)

    def _metadata(
        self, key: m.ShareGroupMetadataKey, value: m.ShareGroupMetadataValue | None
    ) -> None:
        self.epoch = INITIAL_EPOCH if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _target_metadata(
        self,
        key: m.ShareGroupTargetAssignmentMetadataKey,
        value: m.ShareGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.target_epoch = INITIAL_EPOCH if value is None else value.assignment_epoch
        self.target_ms = 0 if value is None else value.assignment_timestamp

    def _target_member(
        self,
        key: m.ShareGroupTargetAssignmentMemberKey,
        value: m.ShareGroupTargetAssignmentMemberValue | None,
    ) -> None:
        self._count_target(self.targets.get(key.member_id, {}), -1)
        if value is None:
            self.targets.pop(key.member_id, None)
            return
        self.targets[key.member_id] = target = {
            topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions
        }
        self._count_target(target, 1)

    def _count_target(self, target: TopicPartitions, change: int) -> None:
        for topic_id, indexes in target.items():
            counts = self.assigned.setdefault(topic_id, {})
            _count(counts, indexes, change)
            if not counts:
                del self.assigned[topic_id]

    def _current(
        self,
        key: m.ShareGroupCurrentMemberAssignmentKey,
        value: m.ShareGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is None:
            self.current.pop(key.member_id, None)
        else:
            self.current[key.member_id] = Current(
                value.member_epoch,
                value.previous_member_epoch,
                {x.topic_id: tuple(sorted(x.partitions)) for x in value.assigned_partitions},
            )

    def _state_partitions(
        self,
        key: m.ShareGroupStatePartitionMetadataKey,
        value: m.ShareGroupStatePartitionMetadataValue | None,
    ) -> None:
        if value is None:
            self.state_partitions = None
            return
        initializing, initialized = (
            {x.topic_id: StateTopic(x.topic_name, tuple(sorted(x.partitions))) for x in topics}
            for topics in (value.initializing_topics, value.initialized_topics)
        )
        deleting = {x.topic_id: x.topic_name for x in value.deleting_topics}
        self.state_partitions = StatePartitions(initializing, initialized, deleting)

    def is_gone(self) -> bool:
        """Whether no record of the group is left."""
        return (
            not self.members
            and not self.targets
            and not self.current
            and self.state_partitions is None
            and self.epoch == INITIAL_EPOCH
            and self.target_epoch == INITIAL_EPOCH
        )

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values, to compare two groups."""
        return {name: getattr(self, name) for name in self.__slots__}


def _count(counts: dict[T, int], keys: Iterable[T], change: int) -> None:
    """Add to each key's count; one of nothing is not kept."""
    for key in keys:
        count = counts.get(key, 0) + change
        if count:
            counts[key] = count
        else:
            del counts[key]


_REPLAYERS: dict[int | None, Callable[[ShareGroup, Any, Any], None]] = {
    10: ShareGroup._member,
    11: ShareGroup._metadata,
    12: ShareGroup._target_metadata,
    13: ShareGroup._target_member,
    14: ShareGroup._current,
    15: ShareGroup._state_partitions,
}

RECORD_TYPES = tuple(record_type for record_type in _REPLAYERS if record_type is not None)


class StoredShareGroups(GroupsOnRecord[ShareGroup]):
    """The share groups on record."""

    def __init__(self, on_group: Callable[[str], None]) -> None:
        super().__init__(NAME, RECORD_TYPES, ShareGroup, on_group)
