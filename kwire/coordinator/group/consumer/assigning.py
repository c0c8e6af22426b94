"""The target assignment of a group: who is to have what at the group's newest epoch.

It is computed from a snapshot by one of the assignors, at most once per
consumer.assignment.interval.ms. A small one is computed at once, within the heartbeat that asks
for it; a large one in slices between which the loop turns, and a result for an epoch that has
passed meanwhile is dropped. Until it is there members keep to the previous target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kwire.coordinator.group.assignors import ASSIGNORS
from kwire.coordinator.group.assignors.spec import (
    Assigning,
    Assignment,
    GroupSpec,
    MemberSpec,
)
from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.groups import ConsumerGroups
from kwire.coordinator.group.consumer.state import ConsumerGroup, Member, TopicPartitions
from kwire.coordinator.group.consumer.subscriptions import topic_names
from kwire.coordinator.partitioner import hash_bucket
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment


def due_in_ms(groups: ConsumerGroups, group_id: str, group: ConsumerGroup, moment: Moment) -> int:
    """How long until the group may get a new target; 0 or less: now."""
    if group.target_ms == 0:
        return 0
    interval_ms = groups.group_config(group_id, "consumer.assignment.interval.ms")
    return group.target_ms + interval_ms - moment.wall_ms


def snapshot(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    members: Mapping[str, Member],
    targets: Mapping[str, TopicPartitions],
) -> GroupSpec:
    """What an assignor sees."""
    specs: dict[str, MemberSpec] = {}
    counts: dict[bytes, int] = {}
    resolved: dict[tuple[tuple[str, ...], str], tuple[bytes, ...]] = {}
    for member_id, member in members.items():
        key = (member.topic_names, member.topic_regex)
        topics = resolved.get(key)
        if topics is None:
            found = []
            for name in topic_names(group, member):
                info = groups.topics.find(name)
                if info is not None:
                    counts[info.topic_id] = info.partition_count
                    found.append(info.topic_id)
            topics = resolved[key] = tuple(sorted(found))
        specs[member_id] = MemberSpec(member.instance_id, topics, targets.get(member_id, {}))
    return GroupSpec(specs, counts)


def begin(groups: ConsumerGroups, group_id: str) -> Assigning:
    """The assignment in slices of the group as it is."""
    group = groups.stored[group_id]
    spec = snapshot(groups, group, group.members, group.targets)
    return ASSIGNORS[assignor_name(groups, group.members)](spec)


def assignor_name(groups: ConsumerGroups, members: Mapping[str, Member]) -> str:
    """The one that most members ask for, or the broker's first. A tie goes to the one that comes
    first in Java's hash order, as on Apache Kafka."""
    votes: dict[str, int] = {}
    for member in members.values():
        if member.server_assignor:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    if not votes:
        return groups.settings.assignors[0]
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return min(tied, key=lambda name: hash_bucket(name, len(votes)))


def partition_counts(groups: ConsumerGroups, names: Iterable[str]) -> Iterator[int]:
    """How many partitions the topics have, of those that there are."""
    for name in names:
        info = groups.topics.find(name)
        if info is not None:
            yield info.partition_count


def target_records(
    group_id: str,
    before: Mapping[str, TopicPartitions],
    after: Assignment,
    epoch: int,
    moment: Moment,
) -> list[CoordinatorRecord]:
    """The records that turn one target assignment into another."""
    made = [
        records.target(group_id, member_id, partitions)
        for member_id, partitions in after.items()
        if before.get(member_id) != partitions
    ]
    made.append(records.target_epoch(group_id, epoch, moment.wall_ms))
    return made
