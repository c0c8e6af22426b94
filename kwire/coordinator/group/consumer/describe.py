"""ConsumerGroupDescribe: a group with its members, what they have and what they are to have."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.group.consumer.assigning import assignor_name
from kwire.coordinator.group.consumer.groups import ConsumerGroups
from kwire.coordinator.group.consumer.state import ConsumerGroup, Current, Member
from kwire.protocol import messages as m

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe(
    groups: ConsumerGroups, group_id: str
) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
    """A DescribedGroup; raises GROUP_ID_NOT_FOUND."""
    group = groups.find(group_id, named="Group")
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor_name(groups, group.members),
        members=[_member(groups, group, member) for member in group.members.values()],
    )


def _member(
    groups: ConsumerGroups, group: ConsumerGroup, member: Member
) -> m.ConsumerGroupDescribeResponse.Member:
    where = group.where(member.member_id)
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
        target_assignment=_assignment(groups, group.targets.get(member.member_id, {}).items()),
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
