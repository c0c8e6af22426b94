"""The record that a classic group consists of, at the version that Kafka 4.4 writes."""

from __future__ import annotations

from kwire.coordinator.group.classic.stored import StoredGroup
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m

GROUP_METADATA_VERSION = 3


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
