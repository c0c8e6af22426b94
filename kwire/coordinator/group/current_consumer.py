"""A member of a consumer group that stands where it should: its heartbeats change nothing.

`CurrentConsumer.alive` does what the general way does for a heartbeat that says nothing new, of a
member that has reached the newest target of its group: the session goes on from now. It says no to
everything else, and changes nothing then.
"""

from __future__ import annotations

import weakref

from kwire.coordinator.group.consumer.groups import (
    JOIN_TIMER,
    METADATA_REFRESH_MS,
    REBALANCE_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
)
from kwire.coordinator.group.consumer.state import ConsumerGroup, Current, Member, MemberState
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.partition import PartitionShard, ShardState


class CurrentConsumer:
    """One member at one epoch, in a shard that somebody else keeps."""

    __slots__ = ("_group", "_group_id", "_member", "_shard", "_timer", "_where")

    def __init__(
        self,
        shard: PartitionShard[GroupShard],
        group_id: str,
        group: ConsumerGroup,
        member: Member,
        where: Current,
    ) -> None:
        self._shard = weakref.ref(shard)  # as `CurrentMember` has it
        self._group_id = group_id
        self._group = group
        self._member = member
        self._where = where
        self._timer = (SESSION_TIMER, group_id, member.member_id)

    def alive(self, now_ms: int) -> int | None:
        """The interval of heartbeats in ms, once the session is extended; None where the general
        way has more to do or to say."""
        shard, group, where = self._shard(), self._group, self._where
        member_id = self._member.member_id
        if (
            shard is None
            or not shard.is_quiet
            or group.epoch != where.epoch
            or group.target_epoch != where.epoch
            or group.members.get(member_id) is not self._member
            or group.current.get(member_id) is not where
        ):
            return None
        groups, group_id = shard.shard.consumer.groups, self._group_id
        if (
            groups.stored.get(group_id) is not group
            or now_ms >= groups.refresh_at_ms.get(group_id, 0)
            or len(group.members) > groups.settings.max_size
        ):
            return None
        deadline_ms = now_ms + groups.group_config(group_id, "consumer.session.timeout.ms")
        if deadline_ms < (groups.deadlines.deadline(self._timer) or 0):
            return None  # sessions have become shorter: the shard's timer has to be set anew
        shard.now_ms = now_ms
        groups.refresh_at_ms[group_id] = now_ms + METADATA_REFRESH_MS
        groups.deadlines.schedule(self._timer, deadline_ms)
        return groups.group_config(group_id, "consumer.heartbeat.interval.ms")


def current_consumer(
    shard: PartitionShard[GroupShard] | None, group_id: str, member_id: str, epoch: int
) -> tuple[CurrentConsumer, Member] | None:
    """The member at this epoch, and its subscription; None where the general way has more to say.

    A member with a pattern, or of the classic protocol, has more than its session.
    """
    if shard is None or shard.state is not ShardState.ACTIVE:
        return None
    groups = shard.shard.consumer.groups
    group = groups.stored.get(group_id)
    if group is None:
        return None
    member, where = group.members.get(member_id), group.current.get(member_id)
    if (
        member is None
        or where is None
        or where.epoch != epoch
        or where.state is not MemberState.STABLE
        or member.topic_regex
        or member.classic is not None
        or any(
            (timer, group_id, member_id) in groups.deadlines
            for timer in (JOIN_TIMER, SYNC_TIMER, REBALANCE_TIMER)
        )
    ):
        return None
    return CurrentConsumer(shard, group_id, group, member, where), member
