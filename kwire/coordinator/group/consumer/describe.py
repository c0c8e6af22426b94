"""ConsumerGroupDescribe: a group with its members, what they have and what they are to have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.coordinator.group.consumer.assigning import assignor_name
from kwire.coordinator.group.consumer.groups import ConsumerGroups
from kwire.coordinator.group.consumer.state import (
    JOINING,
    ConsumerGroup,
    Current,
    Member,
    TopicPartitions,
)
from kwire.protocol import messages as m

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class Described:
    """A group as it is, without its members: those are described as they are now, but later. Their
    topics have the names of then."""

    __slots__ = ("_current", "_groups", "_members", "_targets", "group")

    def __init__(
        self,
        group: m.ConsumerGroupDescribeResponse.DescribedGroup,
        groups: ConsumerGroups | None = None,
        stored: ConsumerGroup | None = None,
    ) -> None:
        self.group = group
        self._groups = groups
        # What is in them is replaced, never changed.
        self._members = [] if stored is None else list(stored.members.values())
        self._current = {} if stored is None else dict(stored.current)
        self._targets = {} if stored is None else dict(stored.targets)

    def __len__(self) -> int:
        """How many members it has."""
        return len(self._members)

    def members(self) -> Iterator[m.ConsumerGroupDescribeResponse.Member]:
        """Each is described when it is taken."""
        groups = self._groups
        if groups is not None:
            for member in self._members:
                where = self._current.get(member.member_id, JOINING)
                target = self._targets.get(member.member_id, {})
                yield _member(groups, member, where, target)

    def whole(self) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
        """With its members."""
        self.group.members = list(self.members())
        return self.group


def describe(groups: ConsumerGroups, group_id: str) -> Described:
    """Raises GROUP_ID_NOT_FOUND."""
    group = groups.find(group_id, named="Group")
    described = m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor_name(groups, group.members),
        members=[],
    )
    return Described(described, groups, group)


def _member(
    groups: ConsumerGroups, member: Member, where: Current, target: TopicPartitions
) -> m.ConsumerGroupDescribeResponse.Member:
    return m.ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=where.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(groups, held(where).items()),
        target_assignment=_assignment(groups, target.items()),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def held(where: Current) -> dict[bytes, list[int]]:
    """What a member has: its partitions and those that it has not given up yet."""
    topics: dict[bytes, list[int]] = {}
    for partitions in (where.assigned, where.pending_revocation):
        for topic, indexes in partitions.items():
            topics.setdefault(topic, []).extend(indexes)
    return topics


def _assignment(
    groups: ConsumerGroups, topics: Iterable[tuple[bytes, Iterable[int]]]
) -> m.ConsumerGroupDescribeResponse.Assignment:
    """Topics that are no longer in the metadata are left out."""
    response = m.ConsumerGroupDescribeResponse
    found = []
    for topic_id, partitions in topics:
        name = groups.topics.name_of(topic_id)
        if name is not None:
            found.append(
                response.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=list(partitions)
                )
            )
    return response.Assignment(topic_partitions=found)
