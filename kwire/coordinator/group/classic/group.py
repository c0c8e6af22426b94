"""The soft state of a classic group: its members and what they are doing (KIP-62, 345, 394, 511).

All of it is lost with the shard; a group is made anew from its last GroupMetadata record
(`StoredGroup`). No method reads time or appends: `join.py`, `membership.py` and `rebalance.py`
decide, this class keeps the invariants (who leads, how many wait, which protocols everybody
supports).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kwire.coordinator.group.classic.states import ClassicState, may_move
from kwire.coordinator.group.classic.stored import StoredGroup, StoredMember
from kwire.coordinator.group.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from kwire.coordinator.partitioner import hash_bucket
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

Protocols = tuple[tuple[str, bytes], ...]
JoinReply: TypeAlias = "Pending[m.JoinGroupResponse]"
SyncReply: TypeAlias = "Pending[m.SyncGroupResponse]"


class ClassicMember:
    """One member. `protocols` are (name, metadata) in the member's order of preference;
    `awaiting_join` and `awaiting_sync` are its parked replies; `is_new` until its first
    rebalance completes, while which a missed deadline removes it even if it waits."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: JoinReply | None = None
        self.awaiting_sync: SyncReply | None = None
        self.is_new = False

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for a protocol it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support protocol {protocol}")

    def to_stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        """As a record of the group has it."""
        return StoredMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )

    def keeps_alive(self) -> bool:
        """Whether a passed session deadline is ignored, because the member waits for us."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None


class ClassicGroup:
    """A classic group while this broker coordinates it. Members are in the order in which they
    joined."""

    def __init__(self, group_id: str, stored: StoredGroup | None = None) -> None:
        stored = stored or StoredGroup()
        self.group_id = group_id
        self.state = ClassicState.STABLE if stored.members else ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_timestamp_ms = stored.state_timestamp_ms
        self.protocol_type = stored.protocol_type
        # Only a group without members has no protocol, whatever a record says.
        self.protocol = (stored.protocol or "") if stored.members else stored.protocol
        self.generation = stored.generation
        self.leader = stored.leader
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}  # group instance id -> member id
        self.pending_joins: dict[str, None] = {}  # member ids that were handed out
        self.pending_syncs: dict[str, None] = {}  # members whose SyncGroup is still to come
        self.new_member_added = False
        self.joined_count = 0  # members whose JoinGroup waits
        self._support: dict[str, int] = {}  # protocol name -> members that support it
        for x in stored.members:
            member = ClassicMember(
                x.member_id,
                x.group_instance_id,
                x.client_id,
                x.client_host,
                x.rebalance_timeout_ms,
                x.session_timeout_ms,
                ((stored.protocol or "", x.subscription),),
                x.assignment,
            )
            self._enter(member)
        self.subscribed_topics = self._compute_subscribed_topics()

    # ------------------------------------------------------------------ state

    def move_to(self, state: ClassicState, wall_ms: int) -> None:
        """Change state along the table of `states.py`."""
        if not may_move(self.state, state):
            raise AssertionError(f"group {self.group_id}: {self.state} -> {state} is no move")
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """Whether members are known to, or may, consume `topic`."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def rebalance_timeout_ms(self) -> int:
        """The longest that any member may take."""
        return max((0, *(x.rebalance_timeout_ms for x in self.members.values())))

    def all_joined(self) -> bool:
        return len(self.members) == self.joined_count and not self.pending_joins

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Raise UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when the instance id has gone over to
        another member."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    # ------------------------------------------------------------------ members

    def add(self, member: ClassicMember, protocol_type: str, reply: JoinReply | None) -> None:
        """A new member that waits for the rebalance it causes."""
        if not self.members:
            self.protocol_type = protocol_type
        self._enter(member)
        self.pending_joins.pop(member.member_id, None)
        self.await_join(member, reply)

    def _enter(self, member: ClassicMember) -> None:
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count(member, 1)

    def adopt(
        self, members: Sequence[ClassicMember], protocol_type: str, generation: int, wall_ms: int
    ) -> None:
        """Become the Stable group of `members`, which have their assignments; the first one
        leads. (A consumer group that goes back to the classic protocol.)"""
        self.state = ClassicState.STABLE
        self.state_timestamp_ms = wall_ms
        self.protocol_type = protocol_type
        self.generation = generation
        for member in members:
            self._enter(member)
        self.protocol = self.select_protocol()
        self.subscribed_topics = self._compute_subscribed_topics()

    def remove(self, member_id: str) -> None:
        """Forget a member or a handed-out id; the next member leads if it was the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.awaiting_join is not None:
                self.joined_count -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        reply: JoinReply | None,
    ) -> None:
        """What a member's new JoinGroup says."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.await_join(member, reply)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """The static member comes back under a new id; it keeps place, protocols, assignment.
        The caller has answered what the old one waited for."""
        old = self.members[old_id]
        self.await_join(old, None)
        new = ClassicMember(
            new_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members = {
            (new_id if k == old_id else k): (new if k == old_id else v)
            for k, v in self.members.items()
        }
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return new

    def await_join(self, member: ClassicMember, reply: JoinReply | None) -> None:
        """Set, replace or clear (None) the member's parked JoinGroup."""
        self.joined_count += (reply is not None) - (member.awaiting_join is not None)
        member.awaiting_join = reply

    def elect_joined_leader(self) -> bool:
        """Give the lead to a member that has rejoined; False when there is no leader, or none
        of the members has rejoined."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is not None and leader.awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    # ------------------------------------------------------------------ protocols

    def _count(self, member: ClassicMember, step: int) -> None:
        for name in dict(member.protocols):
            count = self._support.get(name, 0) + step
            if count:
                self._support[name] = count
            else:
                self._support.pop(name, None)

    def supports(self, protocol_type: str, names: Sequence[str]) -> bool:
        """Whether a member with these protocols fits in: same type, and one protocol that all
        members support."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type) and bool(names)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._support.get(name, 0) == count for name in names
        )

    def select_protocol(self) -> str:
        """The protocol most members prefer among those that all of them support. A tie goes to
        the one that comes first in Java's hash order, as on Apache Kafka."""
        count = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            for name, _ in member.protocols:
                if self._support.get(name, 0) == count:
                    votes[name] = votes.get(name, 0) + 1
                    break
        most = max(votes.values())
        return min(
            (name for name, n in votes.items() if n == most),
            key=lambda name: hash_bucket(name, len(votes)),
        )

    def start_generation(self, wall_ms: int) -> None:
        """All members are in: fix protocol and subscriptions of the next generation, or become
        Empty."""
        self.generation = self.generation + 1 if self.generation < 2**31 - 1 else 0
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.subscribed_topics = self._compute_subscribed_topics()
            self.move_to(ClassicState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol = None
            self.subscribed_topics = self._compute_subscribed_topics()
            self.move_to(ClassicState.EMPTY, wall_ms)

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        """What all members together subscribe to; None when that is not known."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        # Most members of a large group say the same.
        for metadata in dict.fromkeys(x.metadata(self.protocol) for x in self.members.values()):
            subscribed = subscribed_topics(metadata)
            if subscribed is None:
                return None
            topics.update(subscribed)
        return frozenset(topics)

    # ------------------------------------------------------------------ storing

    def to_stored(self, assignments: dict[str, bytes]) -> StoredGroup:
        """The group as its next GroupMetadata record says it, with `assignments` by member id."""
        return self.to_stored_without_members()._replace(
            members=tuple(
                x.to_stored(self.protocol, assignments[x.member_id]) for x in self.members.values()
            )
        )

    def to_stored_without_members(self) -> StoredGroup:
        """The same but for the members."""
        return StoredGroup(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_timestamp_ms=self.state_timestamp_ms,
        )
