"""The records of share groups, as Apache Kafka 4.4 writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.coordinator.group.share.state import (
    Current,
    Member,
    StatePartitions,
    StateTopic,
    TopicPartitions,
)
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m

STABLE = 0


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ShareGroupMetadataKey(group_id=group_id),
        m.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member(group_id: str, of: Member) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ShareGroupMemberMetadataKey(group_id=group_id, member_id=of.member_id),
        m.ShareGroupMemberMetadataValue(
            rack_id=of.rack_id,
            client_id=of.client_id,
            client_host=of.client_host,
            subscribed_topic_names=list(of.topic_names),
        ),
    )


def target_epoch(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=wall_ms
        ),
    )


def target(group_id: str, member_id: str, partitions: TopicPartitions) -> CoordinatorRecord:
    value = m.ShareGroupTargetAssignmentMemberValue
    return CoordinatorRecord(
        m.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        value(
            topic_partitions=[
                value.TopicPartition(topic_id=topic, partitions=list(indexes))
                for topic, indexes in partitions.items()
            ]
        ),
    )


def current(group_id: str, member_id: str, where: Current) -> CoordinatorRecord:
    value = m.ShareGroupCurrentMemberAssignmentValue
    return CoordinatorRecord(
        m.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        value(
            member_epoch=where.epoch,
            previous_member_epoch=where.previous_epoch,
            state=STABLE,
            assigned_partitions=[
                value.TopicPartitions(topic_id=topic, partitions=list(indexes))
                for topic, indexes in where.assigned.items()
            ],
        ),
    )


def state_partitions(group_id: str, partitions: StatePartitions) -> CoordinatorRecord:
    value = m.ShareGroupStatePartitionMetadataValue

    def topics(
        of: Mapping[bytes, StateTopic],
    ) -> list[m.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
        return [
            value.TopicPartitionsInfo(
                topic_id=topic_id, topic_name=topic.name, partitions=list(topic.partitions)
            )
            for topic_id, topic in of.items()
        ]

    return CoordinatorRecord(
        m.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        value(
            initializing_topics=topics(partitions.initializing),
            initialized_topics=topics(partitions.initialized),
            deleting_topics=[
                value.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in partitions.deleting.items()
            ],
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Everything of a member, in Kafka's order."""
    return [
        CoordinatorRecord(
            m.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            m.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            m.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
        ),
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """What is left of an empty group, in Kafka's order."""
    return [
        CoordinatorRecord(m.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        CoordinatorRecord(m.ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(m.ShareGroupMetadataKey(group_id=group_id), None),
    ]


def targets(
    group_id: str, before: Mapping[str, TopicPartitions], after: Mapping[str, TopicPartitions]
) -> Iterable[CoordinatorRecord]:
    """The records that turn one target assignment into another, but for its epoch."""
    return [
        target(group_id, member_id, partitions)
        for member_id, partitions in after.items()
        if before.get(member_id) != partitions
    ]
