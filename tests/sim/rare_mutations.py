"""Mutations of which each was found by one test elsewhere only; see mutations.py.

Chance hardly ever makes the row of events that shows one; each has a plan aimed at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sim.constructed import ONE_BATCH_A_FETCH
from tests.sim.faults import QUICK_ELECTIONS, Plan
from tests.sim.partition_rows import QUICK_FENCES, QUICK_ISR


def raft_vote_by_length_only(replace: Any) -> None:
    """A voter compares the length of logs, and not the epochs of their ends."""
    from kwire.kraft.raft.types import OffsetAndEpoch

    replace(OffsetAndEpoch, "is_up_to_date", lambda self, other: self.offset >= other.offset)


def commits_by_half_of_the_voters(replace: Any) -> None:
    """Half of an even number of voters commits metadata: one of two alone."""
    from kwire.kraft.raft.roles import leader

    def half(end_offsets: Any) -> int:
        descending = sorted(end_offsets, reverse=True)
        return int(descending[(len(descending) - 1) // 2])

    replace(leader, "majority_offset", half)


def pending_isr_not_held(replace: Any) -> None:
    """Whom an AlterPartition would add does not hold the high watermark back before the answer."""
    from kwire.replica.state import ReplicaState

    replace(ReplicaState, "maximal_isr", property(lambda self: self.isr))


def alter_partition_of_an_earlier_life(replace: Any) -> None:
    """A replica gets into the ISR for what an earlier life of its broker had (KIP-903)."""
    from kwire.kraft.controller.requests import alter_partition

    def is_ineligible(state: Any, broker_id: int, epoch: int) -> bool:
        broker = state.image.brokers.get(broker_id)
        return broker is None or not broker.is_active

    replace(alter_partition, "_is_ineligible", is_ineligible)


def alter_partition_of_an_old_partition_epoch(replace: Any) -> None:
    """A wish for an ISR holds although the partition has changed since."""
    from kwire.kraft.controller.requests import alter_partition

    original = alter_partition._check

    def check(state: Any, broker_id: int, partition: Any, data: Any, isr: Any) -> Any:
        oldest = min(data.partition_epoch, partition.partition_epoch)
        return original(state, broker_id, partition._replace(partition_epoch=oldest), data, isr)

    replace(alter_partition, "_check", check)


def elr_keeps_who_lost_data(replace: Any) -> None:
    """A replica that ended without order stays an eligible leader (KIP-966)."""
    from kwire.kraft.controller.partition_change import PartitionChange

    original = PartitionChange._populate_elr

    def populate(self: Any) -> None:
        self.unclean_shutdown_replicas = ()
        original(self)

    replace(PartitionChange, "_populate_elr", populate)


def truncation_by_the_leaders_end(replace: Any) -> None:
    """A follower cuts its log where the leader's epoch ends, not where its own does (KIP-279)."""
    from kwire.replica import fetcher

    def truncation_offset(partition: Any, epoch: int, end_offset: int) -> int:
        return min(end_offset, int(partition.log.log_end_offset))

    replace(fetcher, "truncation_offset", truncation_offset)


def high_watermark_kept_at_truncation(replace: Any) -> None:
    """A replica that cuts its log off goes on with a high watermark beyond its end."""
    from kwire.replica.state import ReplicaState

    original = ReplicaState._leader_answered

    def answered(self: Any, event: Any) -> list[Any]:
        before = self.high_watermark
        effects = original(self, event)
        self.high_watermark = max(before, self.high_watermark)
        return effects

    replace(ReplicaState, "_leader_answered", answered)


def producers_kept_at_truncation(replace: Any) -> None:
    """A log that is cut off remembers the batches that it has no more."""
    from kwire.log.partition.partition_log import PartitionLog

    original = PartitionLog._truncate_to

    def truncate_to(log: Any, offset: int) -> None:
        entries = {key: entry.copy() for key, entry in log.producers.entries.items()}
        original(log, offset)
        log.producers.entries.update(entries)

    replace(PartitionLog, "_truncate_to", truncate_to)


def only_the_last_batch_is_known(replace: Any) -> None:
    """A producer's last batch is known when it comes again, and not the four before."""
    from kwire.log.partition.producers import ProducerEntry

    original = ProducerEntry.find_duplicate

    def find(self: Any, header: Any) -> Any:
        found = original(self, header)
        return found if found is not None and found is self.batches[-1] else None

    replace(ProducerEntry, "find_duplicate", find)


def end_of_the_log_is_listed(replace: Any) -> None:
    """ListOffsets tells consumers where the log ends."""
    from kwire.api import list_offsets

    original = list_offsets._look_up

    def look_up(context: Any, request: Any, topic: str, asked: Any) -> Any:
        found = original(context, request, topic, asked)
        if asked.timestamp == list_offsets.LATEST and isinstance(found, tuple):
            partition = context.parts.replicas.partition(topic, asked.partition_index)
            return (found[0], partition.log.log_end_offset, found[2])
        return found

    replace(list_offsets, "_look_up", look_up)


def coordinator_reads_uncommitted(replace: Any) -> None:
    """A coordinator answers a question by what it has appended."""
    from kwire.coordinator.runtime import CoordinatorRuntime

    original = CoordinatorRuntime.read

    def read(self: Any, partition: int, query: Any, reply: Any = None) -> Any:
        shard = self.shard(partition)
        if shard is None:
            return original(self, partition, query, reply)
        pending = original(self, partition, query)
        if pending.done:
            return pending
        answer = query(shard, self._moment(self._partitions[partition]))
        pending.cancel()
        if reply is None:
            return type(pending).completed(answer)
        reply.complete(answer)
        return reply

    replace(CoordinatorRuntime, "read", read)


def old_generation_commits(replace: Any) -> None:
    """A member of an earlier generation commits offsets."""
    from kwire.coordinator.group.classic import offsets

    original = offsets.check_commit

    def check(group: Any, request: Any, **options: Any) -> None:
        if request.generation_id_or_member_epoch >= 0:
            request = request.copy(generation_id_or_member_epoch=group.generation)
        original(group, request, **options)

    replace(offsets, "check_commit", check)


def init_producer_id_does_not_fence(replace: Any) -> None:
    """A producer that begins anew gets the epoch that its earlier life has."""
    from kwire.coordinator.transaction import init_producer

    original = init_producer._answer

    def answer(shard: Any, transactional_id: str, after: Any, last_epoch: int) -> Any:
        current = shard.transactions.get(transactional_id)
        if current is not None and current.producer_id == after.producer_id:
            after = after._replace(producer_epoch=current.producer_epoch)
        return original(shard, transactional_id, after, last_epoch)

    replace(init_producer, "_answer", answer)


RARE: dict[str, tuple[Callable[[Any], None], int, Plan]] = {
    mutation.__name__: (mutation, seed, plan)
    for mutation, seed, plan in (
        (
            raft_vote_by_length_only,
            1,
            Plan(
                ("longer tail of an old epoch",),
                {**QUICK_ELECTIONS, **ONE_BATCH_A_FETCH},
                groups=(),
            ),
        ),
        (commits_by_half_of_the_voters, 1, Plan(("quorum change",), groups=())),
        (pending_isr_not_held, 1, Plan(("ISR answer lost",), dict(QUICK_ISR), groups=())),
        (
            alter_partition_of_an_earlier_life,
            1,
            Plan(("earlier life in sync",), dict(QUICK_FENCES), groups=()),
        ),
        (
            alter_partition_of_an_old_partition_epoch,
            1,
            Plan(("late wish",), dict(QUICK_ISR), groups=()),
        ),
        (
            elr_keeps_who_lost_data,
            1,
            Plan(("eligible leader lost",), dict(QUICK_FENCES), groups=()),
        ),
        (truncation_by_the_leaders_end, 1, Plan(("two tails",), dict(QUICK_FENCES), groups=())),
        (
            high_watermark_kept_at_truncation,
            1,
            Plan(("unclean leader",), dict(QUICK_FENCES), groups=()),
        ),
        (producers_kept_at_truncation, 1, Plan(("tail sent again",), groups=())),
        (
            only_the_last_batch_is_known,
            1,
            Plan(("one-way partition",), groups=(), extras=("repeats",)),
        ),
        (
            end_of_the_log_is_listed,
            1,
            Plan(("brokers cut off",), groups=(), extras=("positions",)),
        ),
        (coordinator_reads_uncommitted, 1, Plan(("offset that nobody has",), groups=())),
        (old_generation_commits, 1, Plan(("kill",), groups=(), extras=("zombies",))),
        (init_producer_id_does_not_fence, 1, Plan(("kill",), groups=(), extras=("zombies",))),
    )
}
"""name -> the mutation, the pinned seed, the plan it is a seed of."""
