"""A member of a classic group that is known: its heartbeats are answered without the runtime.

`CurrentMember.is_alive` does what the general way does for a heartbeat of a current member of a
group that is not being rebalanced: the session goes on from now. It says no to everything else, and
changes nothing then.
"""

from __future__ import annotations

import weakref

from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember
from kwire.coordinator.group.classic.rebalance import MEMBER_TIMER
from kwire.coordinator.group.classic.states import HEARTBEAT_BY_STATE
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.partition import PartitionShard, ShardState
from kwire.protocol.errors import ErrorCode

CALM = tuple(state for state, code in HEARTBEAT_BY_STATE.items() if code is ErrorCode.NONE)
"""States in which a heartbeat is answered NONE."""


class CurrentMember:
    """One member of one generation, in a shard that somebody else keeps."""

    __slots__ = ("_generation", "_group", "_member", "_shard", "_timer")

    def __init__(
        self, shard: PartitionShard[GroupShard], group: ClassicGroup, member: ClassicMember
    ) -> None:
        # A client that stays connected keeps nothing of a partition that is led elsewhere.
        self._shard = weakref.ref(shard)
        self._group = group
        self._member = member
        self._generation = group.generation
        self._timer = (MEMBER_TIMER, group.group_id, member.member_id)

    def is_alive(self, now_ms: int) -> bool:
        """Whether it is still a member of this generation; its session is extended then."""
        shard, group, member = self._shard(), self._group, self._member
        if (
            shard is None
            or not shard.is_quiet
            or group.state not in CALM
            or group.generation != self._generation
            or group.members.get(member.member_id) is not member
        ):
            return False
        classic = shard.shard.classic.groups
        if classic.live.get(group.group_id) is not group:
            return False
        shard.now_ms = now_ms
        classic.deadlines.schedule(self._timer, now_ms + member.session_timeout_ms)
        return True


def current_member(
    shard: PartitionShard[GroupShard] | None, group_id: str, member_id: str, generation: int
) -> CurrentMember | None:
    """The member of this generation; None where the general way has more to say."""
    if shard is None or shard.state is not ShardState.ACTIVE:
        return None
    group = shard.shard.classic.groups.live.get(group_id)
    if group is None or group.generation != generation or group.state not in CALM:
        return None
    member = group.members.get(member_id)
    return None if member is None else CurrentMember(shard, group, member)
