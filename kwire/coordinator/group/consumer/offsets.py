"""Committing and fetching offsets as a member of a consumer group (KIP-848).

A member commits at its epoch. An older epoch still counts for partitions that were the member's
since then (their assignment epoch is not above it), so that a commit on its way while the group
moves on is not lost. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.coordinator.group.consumer.leaving import unknown_member
from kwire.coordinator.group.consumer.state import ConsumerGroup, Member
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

MEMBER_EPOCH_VERSION = 9
TXN_MEMBER_EPOCH_VERSION = 6

Commit: TypeAlias = "m.OffsetCommitRequest | m.TxnOffsetCommitRequest"


def check_consumer_commit(
    group: ConsumerGroup, request: m.OffsetCommitRequest, api_version: int
) -> None:
    """Raise UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, for a classic member ILLEGAL_GENERATION, and
    UNSUPPORTED_VERSION unless the sender may commit. Nobody in particular may while the group has
    no members."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return
    member = _member(group, request.group_id, request.member_id)
    if member.classic is None and api_version < MEMBER_EPOCH_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    _check_epoch(group, member, request)


def check_transactional_commit(
    group: ConsumerGroup, request: m.TxnOffsetCommitRequest, api_version: int
) -> None:
    """As `check_consumer_commit` for TxnOffsetCommit, in which a producer need not say for whom it
    commits, and which before version 6 knows generations only."""
    if request.generation_id_or_member_epoch < 0 and not request.member_id:
        return
    member = _member(group, request.group_id, request.member_id)
    try:
        _check_epoch(group, member, request)
    except KafkaError:
        if api_version >= TXN_MEMBER_EPOCH_VERSION:
            raise
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from None


def _member(group: ConsumerGroup, group_id: str, member_id: str | None) -> Member:
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        raise unknown_member(group_id, member_id)
    return member


def _check_epoch(group: ConsumerGroup, member: Member, request: Commit) -> None:
    epoch, where = request.generation_id_or_member_epoch, group.where(member.member_id)
    if epoch == where.epoch:
        return
    if member.classic is not None:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if epoch > where.epoch or epoch < 0:
        raise _stale(epoch, where.epoch)
    for topic in request.topics:
        assigned = where.assigned.get(topic.topic_id, {})
        for partition in topic.partitions:
            since = assigned.get(partition.partition_index)
            if since is None or since > epoch:
                raise _stale(epoch, where.epoch)


def check_consumer_fetch(
    group: ConsumerGroup, request: m.OffsetFetchRequest.OffsetFetchRequestGroup
) -> None:
    """Raise UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH when a member is named and is not current."""
    if request.member_id is None and request.member_epoch < 0:
        return
    where = group.where(_member(group, request.group_id, request.member_id).member_id)
    if request.member_epoch != where.epoch:
        raise _stale(request.member_epoch, where.epoch)


def is_subscribed(group: ConsumerGroup, topic: str) -> bool:
    """Whether a member reads the topic, by name or by pattern."""
    return any(
        topic in member.topic_names
        or (
            member.topic_regex in group.regexes
            and topic in group.regexes[member.topic_regex].topics
        )
        for member in group.members.values()
    )


def _stale(epoch: int, current: int) -> KafkaError:
    return KafkaError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"The received member epoch {epoch} does not match the expected member epoch {current}.",
    )


class ConsumerSubscriptions:
    """A `SubscribedGroup` (kinds.py) over a consumer group: offsets expire by their commit."""

    def __init__(self, group: ConsumerGroup, retention_ms: int) -> None:
        self._group = group
        self._retention_ms = retention_ms

    def is_subscribed(self, topic: str) -> bool:
        return is_subscribed(self._group, topic)

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        return moment.wall_ms - stored.commit_ms >= self._retention_ms
