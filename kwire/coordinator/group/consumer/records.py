"""The records of consumer groups, as Apache Kafka 4.4 writes them."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.group.consumer.state import (
    Current,
    Member,
    Partitions,
    ResolvedRegex,
    TopicPartitions,
)
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ConsumerGroupMetadataKey(group_id=group_id),
        m.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member(group_id: str, of: Member) -> CoordinatorRecord:
    value = m.ConsumerGroupMemberMetadataValue
    classic = None
    if of.classic is not None:
        classic = value.ClassicMemberMetadata(
            session_timeout_ms=of.classic.session_timeout_ms,
            supported_protocols=[
                value.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in of.classic.protocols
            ],
        )
    return CoordinatorRecord(
        m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=of.member_id),
        value(
            instance_id=of.instance_id,
            rack_id=of.rack_id,
            client_id=of.client_id,
            client_host=of.client_host,
            subscribed_topic_names=list(of.topic_names),
            subscribed_topic_regex=of.topic_regex,
            rebalance_timeout_ms=of.rebalance_timeout_ms,
            server_assignor=of.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def target_epoch(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=wall_ms
        ),
    )


def target(group_id: str, member_id: str, partitions: TopicPartitions) -> CoordinatorRecord:
    value = m.ConsumerGroupTargetAssignmentMemberValue
    return CoordinatorRecord(
        m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        value(
            topic_partitions=[
                value.TopicPartition(topic_id=topic, partitions=list(indexes))
                for topic, indexes in partitions.items()
            ]
        ),
    )


def current(group_id: str, member_id: str, where: Current) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        m.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=where.epoch,
            previous_member_epoch=where.previous_epoch,
            state=int(where.state),
            assigned_partitions=_partitions(where.assigned),
            partitions_pending_revocation=_partitions(where.pending_revocation),
        ),
    )


def _partitions(
    partitions: Partitions,
) -> list[m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic,
            partitions=list(indexes),
            assignment_epochs=list(indexes.values()),
        )
        for topic, indexes in partitions.items()
    ]


def regex(group_id: str, pattern: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        m.ConsumerGroupRegularExpressionValue(
            topics=list(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def regex_tombstone(group_id: str, pattern: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        m.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Everything of a member, in Kafka's order."""
    return [
        CoordinatorRecord(
            m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
            None,
        ),
        CoordinatorRecord(
            m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
        ),
    ]


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """What is left of an empty group."""
    return whole_group_tombstones(group_id, ())


def whole_group_tombstones(
    group_id: str, members: Iterable[str], patterns: Iterable[str] = ()
) -> list[CoordinatorRecord]:
    """Everything of a group, in Kafka's order."""
    members = list(members)
    return [
        *(
            CoordinatorRecord(
                m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=x), None
            )
            for x in members
        ),
        *(
            CoordinatorRecord(
                m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=x), None
            )
            for x in members
        ),
        CoordinatorRecord(m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(
            CoordinatorRecord(
                m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=x), None
            )
            for x in members
        ),
        *(regex_tombstone(group_id, pattern) for pattern in patterns),
        CoordinatorRecord(m.ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(m.ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
