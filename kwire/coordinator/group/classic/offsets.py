"""Committing offsets as a member of a classic group, or to one without members; their retention.

(KIP-211: an offset's retention counts from the moment its group became Empty, or for a simple group
from the commit; a group that still consumes keeps the offsets of what it consumes.)
"""

from __future__ import annotations

from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


def check_commit(
    group: ClassicGroup,
    request: m.OffsetCommitRequest | m.TxnOffsetCommitRequest,
    *,
    transactional: bool,
) -> None:
    """Raise unless the sender may commit."""
    member_id, instance_id = request.member_id, request.group_instance_id
    generation = request.generation_id_or_member_epoch
    empty = group.state is ClassicState.EMPTY
    if generation < 0 and empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        group.check_member(member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    elif not transactional and not empty:
        # Somebody who assigns partitions by hand uses the name of a group with members.
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


class ClassicSubscriptions:
    """A `SubscribedGroup` (kinds.py) over a classic group."""

    def __init__(self, group: ClassicGroup, retention_ms: int) -> None:
        self._group = group
        self._retention_ms = retention_ms

    def is_subscribed(self, topic: str) -> bool:
        return self._group.is_subscribed(topic)

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        group = self._group
        if group.protocol_type is None:
            since_ms = stored.commit_ms
        elif group.state is ClassicState.EMPTY:
            timestamp_ms = group.state_timestamp_ms
            since_ms = stored.commit_ms if timestamp_ms is None else timestamp_ms
        elif group.state is ClassicState.STABLE and group.subscribed_topics is not None:
            since_ms = stored.commit_ms
        else:
            return False
        if stored.expire_ms is not None:
            return moment.wall_ms >= stored.expire_ms
        return moment.wall_ms - since_ms >= self._retention_ms
