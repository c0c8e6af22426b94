"""The records that classic groups and offsets consist of, at the versions Kafka 4.4 writes."""

from __future__ import annotations

from typing import Any

from kwire.coordinator.group.storage import StoredGroup, StoredOffset
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
# The only version with an explicit expiry, for commits of OffsetCommit v2-4 that give one.
OFFSET_COMMIT_EXPIRY_VERSION = 1


def group_metadata(group_id: str, group: StoredGroup) -> CoordinatorRecord:
    """A classic group as it is to be stored."""
    members = [
        m.GroupMetadataValue.MemberMetadata(
            member_id=x.member_id,
            group_instance_id=x.group_instance_id,
            client_id=x.client_id,
            client_host=x.client_host,
            rebalance_timeout=x.rebalance_timeout_ms,
            session_timeout=x.session_timeout_ms,
            subscription=x.subscription,
            assignment=x.assignment,
        )
        for x in group.members
    ]
    timestamp_ms = group.state_timestamp_ms
    value = m.GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=-1 if timestamp_ms is None else timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(m.GroupMetadataKey(group=group_id), value, GROUP_METADATA_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Deletes a classic group."""
    return CoordinatorRecord(m.GroupMetadataKey(group=group_id), None)


def offset_commit(
    group_id: str, topic: str, partition: int, stored: StoredOffset
) -> CoordinatorRecord:
    """A committed offset; `stored.record_offset` is not part of it."""
    value: Any = m.OffsetCommitValue(
        offset=stored.offset,
        leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        commit_timestamp=stored.commit_ms,
    )
    if stored.expire_ms is not None:
        value.expire_timestamp = stored.expire_ms
        version = OFFSET_COMMIT_EXPIRY_VERSION
    else:
        value.topic_id = stored.topic_id
        version = OFFSET_COMMIT_VERSION
    key = m.OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CoordinatorRecord(key, value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Deletes a committed offset."""
    return CoordinatorRecord(
        m.OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
    )
