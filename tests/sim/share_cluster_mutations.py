"""Faults of share groups in a cluster put into the code on purpose, to show that `share_cluster.py`
finds them. `AIMED` has the histories that are made for them, `SEEDS` a seed of those that finds
each; `python -m tests.sim.share_cluster SEED 40 --mutation NAME` looks for another."""

from __future__ import annotations

from typing import Any

from kwire.coordinator.share import operations
from kwire.pending import Pending
from kwire.share.acquisition import _Acquisition
from kwire.share.changes import StateChange
from kwire.share.delayed_fetch import DelayedShareFetch
from kwire.share.in_flight import RecordStatus
from kwire.share.led_partition import LedPartition
from kwire.share.partition import SharePartition
from kwire.share.states import ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE
from tests.sim.mutations import Mutation
from tests.sim.share_cluster import SharePlan
from tests.sim.share_state_mutations import acknowledged_before_commit


def answered_before_it_is_written(replace: Any) -> None:
    """An acknowledgement is answered while it is on its way to the share coordinator."""
    original = LedPartition._write

    def write(self: Any, change: Any) -> Pending[None]:
        original(self, change)
        return Pending.completed(None)

    replace(LedPartition, "_write", write)


def committed_before_replicas_have_it(replace: Any) -> None:
    """The share coordinator answers what it has appended."""
    acknowledged_before_commit(replace)


def the_start_leaves_acquired_records_behind(replace: Any) -> None:
    """The start moves past a record that a member has."""

    def is_done(self: Any) -> bool:
        return self.state in (ACQUIRED, ARCHIVED) or self.state.name == "ACKNOWLEDGED"

    replace(RecordStatus, "is_done", property(is_done))


def a_led_partition_outlives_its_epoch(replace: Any) -> None:
    """Nobody ends a share partition whose leader has changed: when the same broker leads it again
    it goes on with what it knew."""

    def check(self: Any) -> None:
        self.leader_epoch = self.partition.leader_epoch

    replace(LedPartition, "check_leadership", check)


def archiving_is_not_taken_up(replace: Any) -> None:
    """What waited to be a dead letter when its leader died waits for ever."""
    original = SharePartition.opened

    def opened(self: Any, start_offset: int, state_epoch: int, batches: Any) -> Any:
        original(self, start_offset, state_epoch, batches)
        for batch in self.batches:
            if batch.status.state is ARCHIVING:
                batch.status.settle(ARCHIVED)
        self.move_start()
        return []

    replace(SharePartition, "opened", opened)


def archiving_is_written_as_archived(replace: Any) -> None:
    """The state does not say that a dead letter is still to be written."""
    from kwire.share import led_partition

    original = led_partition.StateBatch

    def batch(first: int, last: int, state: int, count: int) -> Any:
        return original(first, last, int(ARCHIVED) if state == ARCHIVING else state, count)

    replace(led_partition, "StateBatch", batch)


def dead_letters_are_forgotten(replace: Any) -> None:
    """A record is archived without a dead letter."""

    def write(self: Any, transitions: Any) -> None:
        for transition in transitions:
            self._archive(transition)

    replace(LedPartition, "_write_dead_letters", write)


def dead_letters_of_what_was_released(replace: Any) -> None:
    """A record is given up one delivery too early."""

    def settled(self: Any, status: Any, state: Any) -> Any:
        is_spent = status.delivery_count >= self.settings.delivery_count_limit - 1
        return ARCHIVING if state is AVAILABLE and is_spent else state

    replace(SharePartition, "_settled", settled)


def deliveries_are_forgotten_by_the_next_leader(replace: Any) -> None:
    """A leader counts deliveries anew."""
    original = SharePartition.opened

    def opened(self: Any, start_offset: int, state_epoch: int, batches: Any) -> Any:
        waiting = original(self, start_offset, state_epoch, batches)
        for batch in self.batches:
            if batch.status.state is AVAILABLE:
                batch.status.delivery_count = 0
        return waiting

    replace(SharePartition, "opened", opened)


def gaps_of_a_state_are_skipped(replace: Any) -> None:
    """A leader takes what the state knows nothing of for done."""
    original = SharePartition.opened

    def opened(self: Any, start_offset: int, state_epoch: int, batches: Any) -> Any:
        waiting = original(self, start_offset, state_epoch, batches)
        for batch in self.batches:
            if batch.status.state is AVAILABLE and not batch.status.delivery_count:
                batch.status.state = ARCHIVED
        self.move_start()
        return waiting

    replace(SharePartition, "opened", opened)


def locks_are_forgotten(replace: Any) -> None:
    """No timer looks after locks: what a member had that vanished stays its own."""
    replace(LedPartition, "locks_changed", lambda self: None)


def deleted_records_are_given_out(replace: Any) -> None:
    """The start of the log is not looked at, and what a read skips is taken for new."""
    replace(SharePartition, "log_starts_at", lambda self, offset: False)
    replace(SharePartition, "archive", lambda self, first, last, state: False)


def aborted_records_are_given_out(replace: Any) -> None:
    """Transactions that were aborted are not left out."""
    from kwire.share import acquisition

    replace(acquisition, "_without_aborted", lambda partition, acquired, fetched, aborted: acquired)


def open_transactions_are_read(replace: Any) -> None:
    """A group of committed records reads to the high watermark."""
    from kwire.share import delayed_fetch

    replace(delayed_fetch, "READ_COMMITTED", -1)


def a_waiting_fetch_is_not_woken(replace: Any) -> None:
    """What is given back wakes nobody, and who waits does not look again."""
    replace(LedPartition, "wake", lambda self: None)
    replace(DelayedShareFetch, "_expired", lambda self: self._finish())
    replace(LedPartition, "has_records", lambda self: False)


def snapshots_have_the_change_alone(replace: Any) -> None:
    """A snapshot of a state has the batches of its write, without those of before."""
    original = operations._record

    def record(shard: Any, key: Any, known: Any, changed: Any, moment: Any) -> Any:
        return original(shard, key, known._replace(state_batches=()), changed, moment)

    replace(operations, "_record", record)


def expired_without_a_limit(replace: Any) -> None:
    """What runs out is free again, however often that was."""
    settled, expire = SharePartition._settled, SharePartition.expire
    is_expiring: list[bool] = []

    def expires(self: Any, now_ms: int) -> StateChange:
        is_expiring.append(True)
        try:
            return expire(self, now_ms)
        finally:
            is_expiring.clear()

    def settles(self: Any, status: Any, state: Any) -> Any:
        return state if is_expiring else settled(self, status, state)

    replace(SharePartition, "expire", expires)
    replace(SharePartition, "_settled", settles)


def new_records_are_skipped(replace: Any) -> None:
    """Each range that is acquired leaves out the record behind it."""
    original = _Acquisition._take_new

    def take_new(self: Any, first: int, last: int, at: int) -> None:
        original(self, first, last, at)
        self._partition.end_offset += 1

    replace(_Acquisition, "_take_new", take_new)


MOVES = SharePlan((), ("move records",), length_s=8.0, work_s=0.4)
CUTS = SharePlan(("isolation", "frozen process"), (), length_s=12.0, work_s=0.3)
CALM = SharePlan((), ("vanish",), length_s=5.0)
DELETING = SharePlan((), ("delete", "move"), length_s=6.0)
COMMITTED = SharePlan((), ("move",), length_s=6.0, is_committed=True)
BURYING = SharePlan(
    (), ("kill while burying",), length_s=8.0, said=("reject", "reject", "accept"), work_s=0.1
)
FORGETFUL = SharePlan((), (), length_s=8.0, said=("nothing",))

AIMED: dict[str, SharePlan] = {}
MUTATIONS: dict[str, Mutation] = {}
SEEDS: dict[str, int] = {}
for _mutation, _plan, _seed in (
    (answered_before_it_is_written, CUTS, 28),
    (committed_before_replicas_have_it, CUTS, 21),
    (the_start_leaves_acquired_records_behind, MOVES, 1),
    (a_led_partition_outlives_its_epoch, MOVES, 1),
    (archiving_is_not_taken_up, BURYING, 1),
    (archiving_is_written_as_archived, BURYING, 1),
    (dead_letters_are_forgotten, CALM, 1),
    (dead_letters_of_what_was_released, CALM, 1),
    (deliveries_are_forgotten_by_the_next_leader, MOVES, 4),
    (gaps_of_a_state_are_skipped, MOVES, 1),
    (locks_are_forgotten, CALM, 1),
    (deleted_records_are_given_out, DELETING, 2),
    (aborted_records_are_given_out, COMMITTED, 1),
    (open_transactions_are_read, COMMITTED, 1),
    (a_waiting_fetch_is_not_woken, CALM, 1),
    (snapshots_have_the_change_alone, MOVES, 1),
    (expired_without_a_limit, FORGETFUL, 2),
    (new_records_are_skipped, CALM, 1),
):
    MUTATIONS[_mutation.__name__] = _mutation
    AIMED[_mutation.__name__] = _plan
    SEEDS[_mutation.__name__] = _seed
