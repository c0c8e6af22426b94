"""Faults of share coordinators put into the code on purpose, to show that `share_state.py` finds
them."""

from __future__ import annotations

from typing import Any

from kwire.coordinator.shard_interface import Result
from kwire.coordinator.share import operations, service, states
from kwire.coordinator.share.shard import ShareShard
from kwire.share.keys import SharePartitionKey
from tests.sim.mutations import Mutation


def acknowledged_before_commit(replace: Any) -> None:
    """A write is answered once it is appended."""
    from kwire.coordinator.partition import Held, PartitionShard

    original = PartitionShard.hold

    def hold(self: Any, pending: Any, response: Any, error: Any, kind: Any = Held) -> None:
        if error is None and isinstance(self.shard, ShareShard):
            pending.complete(response)
        else:
            original(self, pending, response, error, kind)

    replace(PartitionShard, "hold", hold)


def stale_leaders_write(replace: Any) -> None:
    """Nobody looks at the leader epoch of a write."""
    replace(operations, "_check_leader_epoch", lambda shard, key, leader_epoch: None)


def stale_groups_write(replace: Any) -> None:
    """Nobody looks at the state epoch of a write."""
    replace(operations, "_check_state_epoch", lambda shard, key, state_epoch: None)


def leader_epochs_are_not_written(replace: Any) -> None:
    """A read fences in memory alone."""
    original = operations.read

    def read(shard: Any, group_id: str, asked: Any, moment: Any) -> Any:
        result = original(shard, group_id, asked, moment)
        key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
        shard.leader_epochs[key] = asked.leader_epoch
        return Result((), result.response)

    replace(operations, "read", read)


def snapshots_have_the_change_alone(replace: Any) -> None:
    """A snapshot has the batches of its write, without those of before."""
    original = operations._record

    def record(shard: Any, key: Any, known: Any, changed: Any, moment: Any) -> Any:
        return original(shard, key, known._replace(state_batches=()), changed, moment)

    replace(operations, "_record", record)


def updates_replace(replace: Any) -> None:
    """An update's batches take the place of those of before."""
    replace(states, "combine_valid", lambda known, new, start_offset: list(new))


def start_offsets_go_back(replace: Any) -> None:
    """A write's start offset counts, however low."""
    original = operations.write

    def write(shard: Any, group_id: str, asked: Any, moment: Any) -> Any:
        result = original(shard, group_id, asked, moment)
        for record in result.records:
            record.value.start_offset = max(asked.start_offset, 0)
        return result

    replace(operations, "write", write)


def pruned_up_to_the_newest_snapshot(replace: Any) -> None:
    """Records in front of the newest snapshot are deleted, others' snapshots among them."""
    replace(
        ShareShard,
        "last_redundant_offset",
        lambda self: max(self._snapshot_offsets.values(), default=0) or None,
    )


def cold_snapshots_are_empty(replace: Any) -> None:
    """The snapshot of a share partition that nobody writes to has no batches."""
    original = operations.snapshot_cold_partitions

    def cold(shard: Any, moment: Any) -> Any:
        result = original(shard, moment)
        for record in result.records:
            record.value.state_batches = []
        return result

    replace(operations, "snapshot_cold_partitions", cold)


def update_overtaken_by_its_own_snapshot(replace: Any) -> None:
    """A snapshot that is due is written without the change that made it due."""
    original = operations._record

    def record(shard: Any, key: Any, known: Any, changed: Any, moment: Any) -> Any:
        if shard.is_snapshot_due(key):
            changed = changed._replace(state_batches=(), start_offset=known.start_offset)
        return original(shard, key, known, changed, moment)

    replace(operations, "_record", record)


def initialized_anew_with_the_old_epoch(replace: Any) -> None:
    """A second initialization keeps the state epoch of the first."""
    original = operations.initialize

    def initialize(shard: Any, group_id: str, asked: Any, moment: Any) -> Any:
        result = original(shard, group_id, asked, moment)
        key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
        for record in result.records:
            record.value.state_epoch = shard.state_epochs.get(key, asked.state_epoch)
        return result

    replace(operations, "initialize", initialize)


def answers_of_a_lost_log_are_kept(replace: Any) -> None:
    """What the log refuses is acknowledged all the same."""
    original = service.ShareCoordinator._one

    def one(self: Any, group_id: str, asked: Any, decide: Any, refuse: Any, prefix: str) -> Any:
        def accept(topic_id: bytes, partition: int, code: int, message: str | None) -> Any:
            return refuse(topic_id, partition, 0 if code in (14, 15, 16) else code, message)

        return original(self, group_id, asked, decide, accept, prefix)

    replace(service.ShareCoordinator, "_one", one)


MUTATIONS: dict[str, Mutation] = {
    each.__name__: each
    for each in (
        acknowledged_before_commit,
        stale_leaders_write,
        stale_groups_write,
        leader_epochs_are_not_written,
        snapshots_have_the_change_alone,
        updates_replace,
        start_offsets_go_back,
        pruned_up_to_the_newest_snapshot,
        cold_snapshots_are_empty,
        update_overtaken_by_its_own_snapshot,
        initialized_anew_with_the_old_epoch,
        answers_of_a_lost_log_are_kept,
    )
}
