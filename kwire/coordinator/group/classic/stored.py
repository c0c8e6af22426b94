"""What `__consumer_offsets` says of classic groups. Only `replay` changes it.

record type -> what it holds (versions as measured on Apache Kafka 4.4):

    2   GroupMetadata    a group -> generation, protocol, members
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol import messages as m

NAME = "classic"
GROUP_METADATA = 2


class StoredMember(NamedTuple):
    """A member as a GroupMetadata record has it; times in milliseconds."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A classic group as its last GroupMetadata record has it. A group that exists only because
    offsets were committed under its name (a simple group) has generation 0 and no protocol
    type."""

    protocol_type: str | None = None
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int | None = None
    members: tuple[StoredMember, ...] = ()


SIMPLE_GROUP = StoredGroup()


class StoredClassicGroups:
    """The classic groups on record, by id, in the order of their records."""

    name = NAME

    def __init__(self) -> None:
        self.groups: dict[str, StoredGroup] = {}
        self.replayers = {GROUP_METADATA: self._replay}

    def _replay(self, key: m.GroupMetadataKey, value: m.GroupMetadataValue | None, *_: int) -> None:
        if value is None:
            self.groups.pop(key.group, None)
        else:
            self.groups[key.group] = _stored_group(value)

    def add_simple(self, group_id: str) -> None:
        """Offsets were committed under a name that no group has."""
        self.groups[group_id] = SIMPLE_GROUP

    def drop_simple(self, group_id: str) -> None:
        """There is a group of another kind. Compaction leaves a group's offsets in front of the
        records that make it one of that kind, and a simple group has no records of its own."""
        if self.groups.get(group_id) == SIMPLE_GROUP:
            del self.groups[group_id]

    def snapshot(self) -> dict[str, StoredGroup]:
        """A copy, to compare two shards."""
        return dict(self.groups)


def _stored_group(value: m.GroupMetadataValue) -> StoredGroup:
    """From a GroupMetadataValue of any version; before version 1 members have no rebalance
    timeout, their session timeout counts for it."""
    members = tuple(
        StoredMember(
            member_id=x.member_id,
            group_instance_id=x.group_instance_id,
            client_id=x.client_id,
            client_host=x.client_host,
            rebalance_timeout_ms=(
                x.session_timeout if x.rebalance_timeout == -1 else x.rebalance_timeout
            ),
            session_timeout_ms=x.session_timeout,
            subscription=bytes(x.subscription),
            assignment=bytes(x.assignment),
        )
        for x in value.members
    )
    timestamp_ms = value.current_state_timestamp
    return StoredGroup(
        protocol_type=value.protocol_type or None,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        state_timestamp_ms=None if timestamp_ms == -1 else timestamp_ms,
        members=members,
    )
