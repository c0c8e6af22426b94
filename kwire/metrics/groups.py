"""Groups, what they have committed, and how far behind they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.partition import ShardState
from kwire.metrics.blocks import END, Row, encoded, in_blocks, label, single
from kwire.metrics.cluster import average_and_max_ms
from kwire.replica.partition import Partition

METADATA = "kafka_coordinator_group_groupmetadatamanager_"
COORDINATOR = "kafka_server_group_coordinator_metrics_"
GROUPS_A_TURN = 100
OFFSETS_SHOWN_MAX = 200_000
"""Whoever may commit offsets makes rows: those beyond are only counted."""
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
SHARE_STATES = ("Empty", "Stable", "Dead")
SHARD_STATES = {
    ShardState.ACTIVE: "active",
    ShardState.LOADING: "loading",
    ShardState.FAILED: "failed",
}


class Replicas(Protocol):
    """The partitions of this node."""

    def partition(self, topic: str, index: int) -> Partition | None: ...


def read_groups(groups: GroupCoordinator, replicas: Replicas) -> Iterator[bytes]:
    """See the module; of the groups that this node coordinates."""
    runtime = groups.runtime
    states: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    offsets = 0
    for index in runtime.partitions():
        state = runtime.state(index)
        states[SHARD_STATES.get(state, "") if state is not None else ""] += 1
        shard = runtime.shard(index)
        if shard is None or shard.storage.is_empty:
            continue
        yield from _count_groups(shard, found)
        for row_count, block in _read_offsets(shard, replicas, OFFSETS_SHOWN_MAX - offsets):
            offsets += row_count
            yield block
    yield from _read_counts(found, offsets)
    counts, times_s = groups.counts, runtime.reloads.times_s
    average, longest = average_and_max_ms(times_s)
    yield single(
        {
            f"{COORDINATOR}offset_commit_count": counts.offset_commits,
            f"{COORDINATOR}offset_expiration_count": counts.offset_expirations,
            f"{COORDINATOR}offset_deletion_count": counts.offset_deletions,
            f"{COORDINATOR}group_completed_rebalance_count": counts.completed_rebalances,
            f"{COORDINATOR}consumer_group_rebalance_count": counts.consumer_rebalances,
            f"{COORDINATOR}share_group_rebalance_count": counts.share_rebalances,
            f"{COORDINATOR}partition_load_time_avg": average,
            f"{COORDINATOR}partition_load_time_max": longest,
        }
    )
    yield encoded(
        ("state",),
        (f"{COORDINATOR}num_partitions",),
        [(name, states[name]) for name in ("active", "loading", "failed")],
    )


def _count_groups(shard: GroupShard, found: Counter[tuple[str, str]]) -> Iterator[bytes]:
    for kind in shard.kinds:
        for at, group in enumerate(list(kind.listed())):
            found[kind.name.lower(), group.state] += 1
            if at % GROUPS_A_TURN == GROUPS_A_TURN - 1:
                yield b""


def _read_offsets(shard: GroupShard, replicas: Replicas, room: int) -> Iterator[tuple[int, bytes]]:
    """(how many offsets, a block) of a shard; beyond `room` they are counted, not shown."""
    names = ("kafka_consumergroup_committed_offset", "kafka_consumergroup_lag", END)
    rows: list[Row] = []
    for group in list(shard.storage.offsets.by_group):
        shown = label(group)
        for topic, partitions in list(shard.storage.offsets.by_group.get(group, {}).items()):
            if room <= 0:
                yield len(partitions), b""
                continue
            room -= len(partitions)
            for index, stored in list(partitions.items()):
                partition = replicas.partition(topic, index)
                end = None
                if partition is not None and partition.log is not None:
                    end = partition.log.high_watermark
                lag = None if end is None else max(0, end - stored.offset)
                rows.append((shown, topic, str(index), stored.offset, lag, end))
            if len(rows) >= GROUPS_A_TURN:
                yield from _in_blocks_counted(names, rows)
                rows = []
    yield from _in_blocks_counted(names, rows)


def _in_blocks_counted(names: tuple[str, ...], rows: list[Row]) -> Iterator[tuple[int, bytes]]:
    count = len(rows)
    for block in in_blocks(("group", "topic", "partition"), names, rows):
        yield count, block
        count = 0


def _read_counts(found: Counter[tuple[str, str]], offsets: int) -> Iterator[bytes]:
    classic = {state: found["classic", state] for state in CLASSIC_STATES}
    consumer = {state: found["consumer", state] for state in CONSUMER_STATES}
    share = {state: found["share", state] for state in SHARE_STATES}
    yield single(
        {
            f"{METADATA}numgroups": sum(classic.values()),
            f"{METADATA}numoffsets": offsets,
            **{f"{METADATA}numgroups{state.lower()}": n for state, n in classic.items()},
            f"{COORDINATOR}offset_count": offsets,
        }
    )
    yield encoded(("state",), (f"{COORDINATOR}classic_group_count",), list(classic.items()))
    yield encoded(("state",), (f"{COORDINATOR}consumer_group_count",), list(consumer.items()))
    yield encoded(("state",), (f"{COORDINATOR}share_group_count",), list(share.items()))
    yield encoded(
        ("protocol",),
        (f"{COORDINATOR}group_count",),
        [
            ("classic", sum(classic.values())),
            ("consumer", sum(consumer.values())),
            ("share", sum(share.values())),
        ],
    )
