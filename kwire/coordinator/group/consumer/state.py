"""What `__consumer_offsets` says of consumer groups (KIP-848). Only `replay` changes it.

record type -> what it holds of a group (measured on Apache Kafka 4.4):

    3   ConsumerGroupMetadata                   group epoch, hash of the subscribed topics
    4   ConsumerGroupPartitionMetadata          no longer written; ignored
    5   ConsumerGroupMemberMetadata             a member's subscription
    6   ConsumerGroupTargetAssignmentMetadata   epoch and time of the target assignment
    7   ConsumerGroupTargetAssignmentMember     a member's target
    8   ConsumerGroupCurrentMemberAssignment    a member's epoch, state and partitions
    16  ConsumerGroupRegularExpression          the topics that a pattern matches

A group starts at epoch 1 without a record; the first change makes it 2. A partition belongs to the
member that has it assigned or still has to revoke it, at that member's epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from kwire.coordinator.group.groups_on_record import GroupsOnRecord
from kwire.protocol import messages as m

NAME = "consumer"
INITIAL_EPOCH = 1
LEFT_STATIC_EPOCH = -2
LEFT_EPOCH = -1

# topic id -> partition -> epoch of the target assignment that gave it (0: not known)
Partitions = dict[bytes, dict[int, int]]
TopicPartitions = dict[bytes, tuple[int, ...]]


class MemberState(IntEnum):
    """A member's state, with its number in the record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ClassicProtocols(NamedTuple):
    """What a member of the classic protocol sent when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(NamedTuple):
    """A member's subscription. Times in milliseconds; an empty pattern is none."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicProtocols | None = None


class Current(NamedTuple):
    """Where a member stands."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions
    pending_revocation: Partitions


JOINING = Current(0, 0, MemberState.STABLE, {}, {})


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matched, the metadata offset and the time of matching."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    """One group. Dictionaries keep the order of the records."""

    __slots__ = (
        "current",
        "epoch",
        "members",
        "metadata_hash",
        "name_readers",
        "partition_epochs",
        "pattern_readers",
        "regexes",
        "static_members",
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
        self.regexes: dict[str, ResolvedRegex] = {}
        # indexes of the above
        self.static_members: dict[str, str] = {}
        self.partition_epochs: dict[tuple[bytes, int], int] = {}
        # topic name, pattern -> how many members subscribe to it
        self.name_readers: dict[str, int] = {}
        self.pattern_readers: dict[str, int] = {}

    def is_gone(self) -> bool:
        """Whether no record of the group is left."""
        return (
            not self.members
            and not self.targets
            and not self.current
            and not self.regexes
            and self.epoch == INITIAL_EPOCH
        )

    def state_name(self) -> str:
        """The group's state by Kafka's name."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        for member_id in self.members:
            current = self.current.get(member_id, JOINING)
            if current.state != MemberState.STABLE or current.epoch != self.target_epoch:
                return "Reconciling"
        return "Stable"

    def where(self, member_id: str) -> Current:
        return self.current.get(member_id, JOINING)

    # --- replay ---

    def replay(self, record_type: int | None, key: Any, value: Any) -> None:
        """Apply one record of this group: messages of that type."""
        _REPLAYERS[record_type](self, key, value)

    def _metadata(
        self, key: m.ConsumerGroupMetadataKey, value: m.ConsumerGroupMetadataValue | None
    ) -> None:
        self.epoch = INITIAL_EPOCH if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _ignored(
        self,
        key: m.ConsumerGroupPartitionMetadataKey,
        value: m.ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        """Kafka 4.0 wrote the partitions' racks here; nothing reads them any more."""

    def _member(
        self,
        key: m.ConsumerGroupMemberMetadataKey,
        value: m.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        member_id = key.member_id
        old = self.members.get(member_id)
        static = None if old is None else old.instance_id
        if static is not None and self.static_members.get(static) == member_id:
            del self.static_members[static]
        if old is not None:
            count_readers(self.name_readers, self.pattern_readers, old, -1)
        if value is None:
            self.members.pop(member_id, None)
            return
        member = self.members[member_id] = _member_of(member_id, value)
        count_readers(self.name_readers, self.pattern_readers, member, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def _target_metadata(
        self,
        key: m.ConsumerGroupTargetAssignmentMetadataKey,
        value: m.ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.target_epoch = INITIAL_EPOCH if value is None else value.assignment_epoch
        self.target_ms = 0 if value is None else value.assignment_timestamp

    def _target_member(
        self,
        key: m.ConsumerGroupTargetAssignmentMemberKey,
        value: m.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = {
                topic.topic_id: tuple(topic.partitions) for topic in value.topic_partitions
            }

    def _current(
        self,
        key: m.ConsumerGroupCurrentMemberAssignmentKey,
        value: m.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        old = self.current.pop(key.member_id, None)
        if old is not None:
            self._release(old)
        if value is None:
            return
        current = self.current[key.member_id] = Current(
            value.member_epoch,
            value.previous_member_epoch,
            MemberState(value.state),
            _partitions_of(value.assigned_partitions),
            _partitions_of(value.partitions_pending_revocation),
        )
        for owned in (current.assigned, current.pending_revocation):
            for topic, partitions in owned.items():
                for partition in partitions:
                    self.partition_epochs[topic, partition] = current.epoch

    def _release(self, old: Current) -> None:
        """What a member had is free, unless another one has it at a later epoch."""
        for owned in (old.assigned, old.pending_revocation):
            for topic, partitions in owned.items():
                for partition in partitions:
                    if self.partition_epochs.get((topic, partition)) == old.epoch:
                        del self.partition_epochs[topic, partition]

    def _regex(
        self,
        key: m.ConsumerGroupRegularExpressionKey,
        value: m.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = ResolvedRegex(
                tuple(value.topics), value.version, value.timestamp
            )

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values, to compare two groups."""
        return {name: getattr(self, name) for name in self.__slots__}


_REPLAYERS: dict[int | None, Callable[[ConsumerGroup, Any, Any], None]] = {
    3: ConsumerGroup._metadata,
    4: ConsumerGroup._ignored,
    5: ConsumerGroup._member,
    6: ConsumerGroup._target_metadata,
    7: ConsumerGroup._target_member,
    8: ConsumerGroup._current,
    16: ConsumerGroup._regex,
}

RECORD_TYPES = tuple(record_type for record_type in _REPLAYERS if record_type is not None)


class StoredConsumerGroups(GroupsOnRecord[ConsumerGroup]):
    """The consumer groups on record."""

    def __init__(self, on_group: Callable[[str], None]) -> None:
        super().__init__(NAME, RECORD_TYPES, ConsumerGroup, on_group)


def count_readers(
    names: dict[str, int], patterns: dict[str, int], member: Member, step: int
) -> None:
    """Add (1) or take away (-1) a member's subscription; what nobody subscribes to is not kept."""
    for name in member.topic_names:
        _count(names, name, step)
    if member.topic_regex:
        _count(patterns, member.topic_regex, step)


def _count(counts: dict[str, int], name: str, step: int) -> None:
    count = counts.get(name, 0) + step
    if count:
        counts[name] = count
    else:
        del counts[name]


def _member_of(member_id: str, value: m.ConsumerGroupMemberMetadataValue) -> Member:
    classic = value.classic_member_metadata
    return Member(
        member_id=member_id,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=tuple(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicProtocols(
            classic.session_timeout_ms,
            tuple((x.name, bytes(x.metadata)) for x in classic.supported_protocols),
        ),
    )


def _partitions_of(
    topics: Sequence[m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions],
) -> Partitions:
    found: Partitions = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [0] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs))
    return found
