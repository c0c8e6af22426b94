"""What the share coordinator decides for one share partition of each request.

Initialize, write and read are fenced: by a state epoch below the highest that was initialized, by
a leader epoch below the highest that read. A write changes neither epoch; a read with another
leader epoch writes it down before it is answered. Initialize begins anew from any state of the same
or a lower state epoch. Source: KIP-932; order of the checks and their texts measured on Apache
Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.coordinator.share import states
from kwire.coordinator.share.shard import ShareShard
from kwire.coordinator.share.states import SharePartitionState
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.keys import SharePartitionKey
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    StateBatch,
    WritePartition,
)
from kwire.share.state_batches import combine, is_backward

STALE_LEADER_MS = 60_000
"""A leader of the quorum that was replaced has noticed by then."""
NEGATIVE_PARTITION = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."
FENCED_LEADER_EPOCH = "The leader epoch in the request is older than the epoch on the broker."
FENCED_STATE_EPOCH = "The coordinator rejected the request because the state epoch did not match."
UNKNOWN_TOPIC = "This server does not host this topic-partition."


def initialize(
    shard: ShareShard, group_id: str, asked: InitializePartition, moment: Moment
) -> Result[PartitionResult]:
    """Give a share partition its first state, or a new one."""
    key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
    _check_number(asked.partition, NEGATIVE_PARTITION)
    _check_number(asked.state_epoch, NEGATIVE_STATE_EPOCH)
    _check_state_epoch(shard, key, asked.state_epoch)
    _check_topic(shard, key)
    known = shard.states.get(key)
    snapshot_epoch = 0 if known is None else known.snapshot_epoch + 1
    state = states.initial(snapshot_epoch, asked.state_epoch, asked.start_offset, moment.wall_ms)
    return Result((states.snapshot(key, state),), PartitionResult(asked.topic_id, asked.partition))


def read(
    shard: ShareShard, group_id: str, asked: PartitionEpoch, moment: Moment
) -> Result[PartitionState]:
    """All of a share partition's state, for the leader of a leader epoch."""
    key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
    _check_number(asked.partition, NEGATIVE_PARTITION)
    _check_number(asked.leader_epoch, NEGATIVE_LEADER_EPOCH)
    known = _initialized(shard, key, READ_UNINITIALIZED)
    _check_leader_epoch(shard, key, asked.leader_epoch)
    _check_topic(shard, key)
    answer = PartitionState(
        asked.topic_id,
        asked.partition,
        state_epoch=known.state_epoch,
        start_offset=known.start_offset,
        state_batches=tuple(known.state_batches),
    )
    if shard.leader_epochs.get(key) == asked.leader_epoch:
        return Result((), answer)
    changed = known._replace(leader_epoch=asked.leader_epoch, state_batches=())
    return Result((_record(shard, key, known, changed, moment),), answer)


def write(
    shard: ShareShard, group_id: str, asked: WritePartition, moment: Moment
) -> Result[PartitionResult]:
    """Lay a change over a share partition's state."""
    key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
    _check_number(asked.partition, NEGATIVE_PARTITION)
    _check_number(asked.leader_epoch, NEGATIVE_LEADER_EPOCH)
    _check_number(asked.state_epoch, NEGATIVE_STATE_EPOCH)
    known = _initialized(shard, key, WRITE_UNINITIALIZED)
    _check_leader_epoch(shard, key, asked.leader_epoch)
    _check_state_epoch(shard, key, asked.state_epoch)
    _check_topic(shard, key)
    start_offset = max(asked.start_offset, known.start_offset)
    changed = known._replace(
        start_offset=start_offset,
        delivery_complete_count=_delivery_complete_count(known, asked),
        state_batches=_changed_batches(known, asked, start_offset),
    )
    record = _record(shard, key, known, changed, moment)
    return Result((record,), PartitionResult(asked.topic_id, asked.partition))


def delete(
    shard: ShareShard, group_id: str, asked: PartitionId, moment: Moment
) -> Result[PartitionResult]:
    """Forget a share partition; one without state is as good."""
    key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
    _check_number(asked.partition, NEGATIVE_PARTITION)
    _check_topic(shard, key)
    answer = PartitionResult(asked.topic_id, asked.partition)
    return Result((states.tombstone(key),) if key in shard.states else (), answer)


def read_summary(
    shard: ShareShard, group_id: str, asked: PartitionEpoch, moment: Moment
) -> Result[PartitionSummary]:
    """Offsets and epochs of a share partition, whatever the leader epoch of who asks."""
    key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
    _check_number(asked.partition, NEGATIVE_PARTITION)
    _check_topic(shard, key)
    known = shard.states.get(key)
    answer = PartitionSummary(asked.topic_id, asked.partition)
    if known is not None:
        answer = answer._replace(
            state_epoch=known.state_epoch,
            leader_epoch=known.leader_epoch,
            start_offset=known.start_offset,
            delivery_complete_count=known.delivery_complete_count,
        )
    return Result((), answer)


def snapshot_cold_partitions(shard: ShareShard, moment: Moment) -> Result[None]:
    """Snapshots of share partitions whose last one is old, so that the records in front of it can
    be deleted. None once every one has such a snapshot and no other since."""
    known = shard.states
    if all(state.create_timestamp_ms != state.write_timestamp_ms for state in known.values()):
        return Result()
    interval_ms = shard.settings.cold_partition_snapshot_interval_ms
    records = [
        states.snapshot(
            key,
            state._replace(
                snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=moment.wall_ms
            ),
        )
        for key, state in known.items()
        if moment.wall_ms - state.write_timestamp_ms >= interval_ms
    ]
    return Result(records, atomic=False)


def topics_deleted(shard: ShareShard, topic_ids: frozenset[bytes]) -> Result[None]:
    """Forget the share partitions of topics that are gone."""
    records = [states.tombstone(key) for key in shard.states if key.topic_id in topic_ids]
    return Result(records, atomic=False)


def forget_missing_topics(shard: ShareShard, moment: Moment) -> Result[None]:
    """Forget the share partitions of topics that there are not, and were not when this was done
    last: a topic that is new may be one of which this broker's metadata is yet to hear. So it waits
    until the metadata has all that was committed then."""
    if shard.missing and not shard.has_all_of(shard.missing_ms + STALE_LEADER_MS):
        return Result()
    missing = frozenset(
        topic_id
        for topic_id in dict.fromkeys(key.topic_id for key in shard.states)
        if shard.partitions_of(topic_id) is None
    )
    gone = missing & shard.missing
    shard.missing, shard.missing_ms = missing, moment.now_ms
    return topics_deleted(shard, gone)


# --- records


def _record(
    shard: ShareShard,
    key: SharePartitionKey,
    known: SharePartitionState,
    changed: SharePartitionState,
    moment: Moment,
) -> CoordinatorRecord:
    """An update with what changed, or a snapshot of all where there are many updates already."""
    if not shard.is_snapshot_due(key):
        return states.update(key, changed)
    batches = _combined(known.state_batches, changed.state_batches, changed.start_offset)
    return states.snapshot(
        key,
        changed._replace(
            snapshot_epoch=known.snapshot_epoch + 1,
            state_batches=batches,
            create_timestamp_ms=moment.wall_ms,
            write_timestamp_ms=moment.wall_ms,
        ),
    )


def _changed_batches(
    known: SharePartitionState, asked: WritePartition, start_offset: int
) -> list[StateBatch]:
    """The batches of a write, from the start offset on and not overlapping."""
    changed = _combined((), asked.state_batches, start_offset)
    # A batch that ends before it begins is kept as long as there is no other.
    if any(is_backward(x) for x in (*changed[:1], *known.state_batches[:1])):
        _combined(known.state_batches, changed, start_offset)
    return changed


def _combined(
    known: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int
) -> list[StateBatch]:
    try:
        return combine(known, new, start_offset)
    except ValueError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _delivery_complete_count(known: SharePartitionState, asked: WritePartition) -> int:
    """The count belongs to a start offset: of the higher one, and of the same the higher count."""
    if asked.start_offset > known.start_offset:
        return asked.delivery_complete_count
    if asked.start_offset < known.start_offset:
        return known.delivery_complete_count
    return max(asked.delivery_complete_count, known.delivery_complete_count)


# --- checks


def _check_number(number: int, message: str) -> None:
    if number < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_leader_epoch(shard: ShareShard, key: SharePartitionKey, leader_epoch: int) -> None:
    if shard.leader_epochs.get(key, leader_epoch) > leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, FENCED_LEADER_EPOCH)


def _check_state_epoch(shard: ShareShard, key: SharePartitionKey, state_epoch: int) -> None:
    if shard.state_epochs.get(key, state_epoch) > state_epoch:
        raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, FENCED_STATE_EPOCH)


def _check_topic(shard: ShareShard, key: SharePartitionKey) -> None:
    count = shard.partitions_of(key.topic_id)
    if count is None or key.partition >= count:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC)


def _initialized(shard: ShareShard, key: SharePartitionKey, message: str) -> SharePartitionState:
    known = shard.states.get(key)
    if known is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return known
