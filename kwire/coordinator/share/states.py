"""The state of one share partition, and the two records that it is kept in.

A snapshot has all of it. An update has what changed since the snapshot of the same snapshot epoch:
its batches are laid over those before, it has no state epoch and no timestamps. A tombstone of the
snapshot's key ends it. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m
from kwire.share.keys import SharePartitionKey
from kwire.share.messages import batches_of, entries_of
from kwire.share.persister import (
    DEFAULT_STATE_EPOCH,
    UNKNOWN_DELIVERY_COMPLETE_COUNT,
    UNKNOWN_START_OFFSET,
    StateBatch,
)
from kwire.share.state_batches import combine_valid

UNKNOWN_LEADER_EPOCH = -1


class SharePartitionState(NamedTuple):
    """Wall-clock timestamps in milliseconds: `write_timestamp_ms` is that of the last snapshot, and
    differs from `create_timestamp_ms` where nothing was written since the one before."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch] = ()
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0


def initial(
    snapshot_epoch: int, state_epoch: int, start_offset: int, wall_ms: int
) -> SharePartitionState:
    """The state of a share partition that was initialized."""
    count = 0 if start_offset != UNKNOWN_START_OFFSET else UNKNOWN_DELIVERY_COMPLETE_COUNT
    return SharePartitionState(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=count,
        create_timestamp_ms=wall_ms,
        write_timestamp_ms=wall_ms,
    )


def snapshot(key: SharePartitionKey, state: SharePartitionState) -> CoordinatorRecord:
    """A record of all of the state."""
    shape = m.ShareSnapshotValue
    value = shape(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=entries_of(state.state_batches, shape.StateBatch),
    )
    return CoordinatorRecord(_snapshot_key(key), value)


def update(key: SharePartitionKey, state: SharePartitionState) -> CoordinatorRecord:
    """A record of what changed; `state` has the batches that did."""
    shape = m.ShareUpdateValue
    value = shape(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=entries_of(state.state_batches, shape.StateBatch),
    )
    group_id, topic_id, partition = key
    return CoordinatorRecord(
        m.ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition), value
    )


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """The record that ends a share partition's state."""
    return CoordinatorRecord(_snapshot_key(key), None)


def _snapshot_key(key: SharePartitionKey) -> m.ShareSnapshotKey:
    group_id, topic_id, partition = key
    return m.ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)


def from_snapshot(value: m.ShareSnapshotValue) -> SharePartitionState:
    """The state that a snapshot has; its batches are made ones that do not overlap, whoever wrote
    them."""
    batches = batches_of(value.state_batches)
    return SharePartitionState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        batches if len(batches) < 2 else combine_valid((), batches, UNKNOWN_START_OFFSET),
        value.create_timestamp,
        value.write_timestamp,
    )


def after_update(
    state: SharePartitionState | None, value: m.ShareUpdateValue
) -> SharePartitionState:
    """`state` with an update; without one (its snapshot is gone) what the update has."""
    if state is None:
        return SharePartitionState(
            value.snapshot_epoch,
            DEFAULT_STATE_EPOCH,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            batches_of(value.state_batches),
        )
    start_offset = value.start_offset
    if start_offset == UNKNOWN_START_OFFSET:
        start_offset = state.start_offset
    leader_epoch = value.leader_epoch
    if leader_epoch == UNKNOWN_LEADER_EPOCH:
        leader_epoch = state.leader_epoch
    return state._replace(
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=combine_valid(
            state.state_batches, batches_of(value.state_batches), start_offset
        ),
    )
