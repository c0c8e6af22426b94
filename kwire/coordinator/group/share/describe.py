"""ShareGroupDescribe: a group with its members and what they read."""

from __future__ import annotations

from kwire.coordinator.group.share.groups import ShareGroups
from kwire.coordinator.group.share.state import Member, ShareGroup
from kwire.protocol import messages as m

ASSIGNOR = "simple"


def describe(groups: ShareGroups, group_id: str) -> m.ShareGroupDescribeResponse.DescribedGroup:
    """A DescribedGroup; raises GROUP_ID_NOT_FOUND."""
    group = groups.find(group_id)
    return m.ShareGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(groups, group, member) for member in group.members.values()],
    )


def _member(
    groups: ShareGroups, group: ShareGroup, member: Member
) -> m.ShareGroupDescribeResponse.Member:
    """Topics that are no longer in the metadata are left out."""
    where = group.where(member.member_id)
    response = m.ShareGroupDescribeResponse
    assigned = []
    for topic_id, partitions in where.assigned.items():
        name = groups.topics.name_of(topic_id)
        if name is not None:
            assigned.append(
                response.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=list(partitions)
                )
            )
    return response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=where.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        assignment=response.Assignment(topic_partitions=assigned),
    )
