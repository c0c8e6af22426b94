"""The record that a classic group consists of, at the version that Kafka 4.4 writes."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.group.classic.stored import StoredGroup, StoredMember
from kwire.coordinator.open_batch import Encoded
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m
from kwire.protocol.coordinator_records import encode_key, encode_value_around
from kwire.protocol.errors import EncodeError

GROUP_METADATA_VERSION = 3


def group_metadata(group_id: str, group: StoredGroup) -> CoordinatorRecord:
    """A classic group as it is to be stored."""
    return _record(group_id, group, [_member(x) for x in group.members])


class SlicedGroup:
    """What `group_metadata` makes, and its bytes, of some members at a time."""

    def __init__(self) -> None:
        self._members: list[m.GroupMetadataValue.MemberMetadata] = []
        self._encoded: list[bytes] = []
        self._fits = True

    @property
    def count(self) -> int:
        return len(self._members)

    def add(self, members: Iterable[StoredMember]) -> None:
        """The next ones."""
        made = [_member(x) for x in members]
        self._members += made
        encode = m.GroupMetadataValue.encode_elements
        try:
            self._encoded.append(encode("members", made, GROUP_METADATA_VERSION))
        except EncodeError:
            self._fits = False

    def record(
        self, group_id: str, group: StoredGroup
    ) -> tuple[CoordinatorRecord, list[Encoded] | None]:
        """The record of a group that has these members, and as it stands in the log; None for what
        does not fit into a record, which whoever encodes it then is told."""
        record = _record(group_id, group, self._members)
        assert record.value is not None
        members = self.count, b"".join(self._encoded)
        try:
            value = encode_value_around(record.value, "members", members, GROUP_METADATA_VERSION)
            encoded: list[Encoded] = [(encode_key(record.key), value)]
        except EncodeError:
            self._fits = False
        return record, encoded if self._fits else None


def _member(member: StoredMember) -> m.GroupMetadataValue.MemberMetadata:
    return m.GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.subscription,
        assignment=member.assignment,
    )


def _record(
    group_id: str, group: StoredGroup, members: list[m.GroupMetadataValue.MemberMetadata]
) -> CoordinatorRecord:
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
