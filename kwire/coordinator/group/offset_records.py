"""The records of committed offsets, at the versions that Kafka 4.4 writes."""

from __future__ import annotations

from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m

OFFSET_COMMIT_VERSION = 4
# The only version with an explicit expiry, for commits of OffsetCommit v2-4 that give one.
OFFSET_COMMIT_EXPIRY_VERSION = 1


def offset_commit(
    group_id: str, topic: str, partition: int, stored: StoredOffset
) -> CoordinatorRecord:
    """A committed offset; `stored.record_offset` is not part of it."""
    value = m.OffsetCommitValue(
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
