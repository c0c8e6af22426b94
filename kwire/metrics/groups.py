"""Groups, what they have committed, and how far behind they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.partition import ShardState
from kwire.log.partition.partition_log import PartitionLog
from kwire.metrics.blocks import AGE, END, Row, encoded, in_blocks, label, single
from kwire.metrics.cluster import average_and_max_ms
from kwire.replica.partition import Partition

METADATA = "kafka_coordinator_group_groupmetadatamanager_"
COORDINATOR = "kafka_server_group_coordinator_metrics_"
LAG = ("kafka_consumergroup_committed_offset", "kafka_consumergroup_lag", AGE, END)
MS_PER_S = 1000
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


class Ages(NamedTuple):
    """How old records are, in seconds; no more than the node runs for, whatever the records say."""

    wall_ms: int
    uptime_ms: int

    def of_newest(self, log: PartitionLog) -> float | None:
        """Of the newest record of a log, as far as its last segment tells."""
        newest_ms = log.segments.active.max_timestamp
        if newest_ms < 0:
            return None
        return max(0, min(self.wall_ms - newest_ms, self.uptime_ms)) / MS_PER_S


def read_groups(groups: GroupCoordinator, replicas: Replicas, ages: Ages) -> Iterator[bytes]:
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
        for row_count, block in _read_offsets(shard, replicas, ages, OFFSETS_SHOWN_MAX - offsets):
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


def _read_offsets(
    shard: GroupShard, replicas: Replicas, ages: Ages, room: int
) -> Iterator[tuple[int, bytes]]:
    """(how many offsets, a block) of a shard; beyond `room` they are counted, not shown."""
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
                key = shown, topic, str(index)
                log = None if partition is None else partition.log
                if log is None:
                    rows.append((*key, stored.offset, None, None, None))
                    continue
                end = log.high_watermark
                lag = max(0, end - stored.offset)
                age_s = ages.of_newest(log) if lag else None
                rows.append((*key, stored.offset, lag, age_s, end))
            if len(rows) >= GROUPS_A_TURN:
                yield from _in_blocks_counted(rows)
                rows = []
    yield from _in_blocks_counted(rows)


def _in_blocks_counted(rows: list[Row]) -> Iterator[tuple[int, bytes]]:
    count = len(rows)
    for block in in_blocks(("group", "topic", "partition"), LAG, rows):
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
