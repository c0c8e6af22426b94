"""Faults put into the code on purpose, to show that the simulation finds them.

Each one is what somebody might really get wrong; `SEEDS` pins, for each, a seed whose history
finds it, with the faults of `AIMED` where there are some; `python -m tests.sim.search NAME` looks
for one. Those of `rare_mutations.py` are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.sim.constructed import ONE_BATCH_A_FETCH
from tests.sim.faults import QUICK_ELECTIONS, Plan
from tests.sim.rare_mutations import RARE

Mutation = Callable[[Any], None]
"""`mutation(replace)`, where `replace(owner, name, value)` is undone afterwards."""


def ack_before_high_watermark(replace: Any) -> None:
    """acks=all is answered once the leader has written."""
    from kwire.replica.partition import Partition

    replace(Partition, "wait_for_commit", lambda self, offset, callback: None)


def high_watermark_beyond_isr(replace: Any) -> None:
    """The high watermark follows the fastest in-sync replica, not the slowest."""
    from kwire.replica.state import AdvanceHighWatermark, ReplicaState

    def advance(self: Any, now_ms: int) -> list[Any]:
        ends = [self.followers[r].log_end_offset for r in self.isr if r in self.followers]
        mark = min(self.log_end_offset, max(ends, default=self.log_end_offset))
        if mark <= self.high_watermark:
            return []
        self.high_watermark = mark
        return [AdvanceHighWatermark(mark)]

    replace(ReplicaState, "_advance", advance)


def min_isr_ignored(replace: Any) -> None:
    """A leader alone acknowledges acks=all."""
    from kwire.replica.partition import Partition
    from kwire.replica.state import ReplicaState

    original = ReplicaState._advance

    def advance(self: Any, now_ms: int) -> list[Any]:
        kept, self.min_isr = self.min_isr, 1
        try:
            return original(self, now_ms)
        finally:
            self.min_isr = kept

    replace(ReplicaState, "_advance", advance)
    replace(Partition, "effective_min_isr", lambda self: 1)


def isr_expanded_before_catch_up(replace: Any) -> None:
    """Whoever fetches is in sync."""
    from kwire.replica.state import ReplicaState

    original = ReplicaState._follower_fetched

    def fetched(self: Any, event: Any, now_ms: int) -> list[Any]:
        effects = original(self, event, now_ms)
        if (
            event.replica_id in self.followers
            and event.replica_id not in self.isr
            and self.pending_isr is None
            and self.is_eligible(event.replica_id, event.replica_epoch)
        ):
            effects.append(self._alter((*self.isr, event.replica_id)))
        return effects

    replace(ReplicaState, "_follower_fetched", fetched)
    replace(ReplicaState, "maximal_isr", property(lambda self: self.isr))


def truncation_to_stale_high_watermark(replace: Any) -> None:
    """KIP-101: a follower cuts its log to the high watermark that it knew, and a new leader too."""
    from kwire.replica.fetcher import LeaderFetcher

    original = LeaderFetcher.add

    def add(self: Any, partition: Any, leader_epoch: int) -> None:
        if partition.state.high_watermark < partition.log.log_end_offset:
            partition.truncate_to(partition.state.high_watermark)
        original(self, partition, leader_epoch)

    replace(LeaderFetcher, "add", add)


def truncation_skipped(replace: Any) -> None:
    """A follower goes on where its log ends, whatever the leader says about epochs."""
    from kwire.replica.fetcher import LeaderFetcher

    def diverged(self: Any, partition: Any, diverging: Any) -> None:
        partition.log.leader_epochs.truncate_from_end(partition.log.log_end_offset)

    replace(LeaderFetcher, "_diverged", diverged)


def dedupe_state_lost_at_failover(replace: Any) -> None:
    """A new leader knows nothing of the producers."""
    from kwire.log.partition.partition_log import PartitionLog

    original = PartitionLog.assign_epoch

    def assign_epoch(self: Any, leader_epoch: int) -> None:
        original(self, leader_epoch)
        if self.leader_epochs.latest > 0:
            self.producers.clear()

    replace(PartitionLog, "assign_epoch", assign_epoch)


def leader_epoch_not_bumped(replace: Any) -> None:
    """Another leader is elected at the same epoch."""
    from kwire.kraft.images.topics import PartitionImage

    original = PartitionImage.merge

    def changed(self: Any, change: Any) -> Any:
        return original(self, change)._replace(leader_epoch=self.leader_epoch)

    replace(PartitionImage, "merge", changed)


def metadata_answered_before_commit(replace: Any) -> None:
    """The controller answers once it has appended."""
    from kwire.kraft.controller_runner import ControllerRunner

    def when_committed(self: Any, offset: int, reply: Any, response: Any) -> None:
        reply.complete(response)

    replace(ControllerRunner, "when_committed", when_committed)


def metadata_acknowledged_unsynced(replace: Any) -> None:
    """A replica of the metadata acknowledges what it has not synced."""
    from kwire.kraft.raft.handlers import fetch

    replace(fetch, "_waits_for_flush", lambda raft: False)


def fetches_above_the_high_watermark(replace: Any) -> None:
    """Consumers read what is written."""
    from kwire.log.partition.reader import LogReader
    from kwire.log.types import Isolation

    original = LogReader.read

    def read(self: Any, offset: int, bytes_max: int, **options: Any) -> Any:
        if options.get("isolation") == Isolation.HIGH_WATERMARK:
            options["isolation"] = Isolation.LOG_END
        return original(self, offset, bytes_max, **options)

    replace(LogReader, "read", read)


def last_stable_offset_ignored(replace: Any) -> None:
    """read_committed reads up to the high watermark."""
    from kwire.log.partition.partition_log import PartitionLog

    replace(PartitionLog, "last_stable_offset", property(lambda self: self.high_watermark))


def aborted_list_lost(replace: Any) -> None:
    """A read_committed fetch does not say which transactions are aborted."""
    from kwire.log.partition.reader import LogReader

    replace(LogReader, "_aborted", lambda self, offset, next_offset: [])


def marker_lost(replace: Any) -> None:
    """Markers that a leader did not take count as written."""
    from kwire.coordinator.transaction.markers import MarkerSender

    def retry_later(self: Any, job: Any) -> None:
        self._finish(job)

    replace(MarkerSender, "_retry_later", retry_later)


def unclean_restart_stays_in_sync(replace: Any) -> None:
    """A broker that lost what it had not synced comes back as an in-sync replica."""
    from kwire.kraft.controller import elections

    replace(elections, "shut_down", lambda state, broker_id, was_clean: [])


def transaction_ends_before_commit(replace: Any) -> None:
    """Coordinators answer once they have appended."""
    from kwire.coordinator.partition import PartitionShard

    def hold(self: Any, pending: Any, response: Any, error: Any, kind: Any = None) -> None:
        if error is not None:
            pending.fail(error)
        else:
            pending.complete(response)

    replace(PartitionShard, "hold", hold)


def follower_counts_ahead(replace: Any) -> None:
    """The leader takes what it has sent to a follower for what the follower has."""
    from kwire.replica.partition import Partition

    original = Partition.follower_fetched

    def fetched(self: Any, replica: int, epoch: int, offset: int, start: int) -> None:
        original(self, replica, epoch, max(offset, self.log.log_end_offset), start)

    replace(Partition, "follower_fetched", fetched)


def vote_not_synced(replace: Any) -> None:
    """The file of votes is replaced, and its directory not synced."""
    from kwire.kraft.metadata_log import QUORUM_STATE_FILE, MetadataLog
    from kwire.log.files import write_atomically

    def write_election(self: Any, election: Any, kraft_version: int) -> Any:
        path = f"{self.directory}/{QUORUM_STATE_FILE}"
        content = election.encode(kraft_version)
        return self._scheduler.run(lambda: write_atomically(self._files, path, content, sync=False))

    replace(MetadataLog, "write_election", write_election)


def votes_twice(replace: Any) -> None:
    """A voter grants a second candidate its vote in the same epoch."""
    from kwire.kraft.raft.roles import nominee, unattached

    def grants(role: Any, candidate: Any, up_to_date: bool, pre_vote: bool) -> bool:
        return up_to_date

    replace(unattached, "grants_unless_decided", grants)
    replace(nominee, "grants_unless_decided", grants)


def votes_for_shorter_logs(replace: Any) -> None:
    """A candidate's log need not be as complete as the voter's."""
    from kwire.kraft.raft.types import OffsetAndEpoch

    replace(OffsetAndEpoch, "is_up_to_date", lambda self, other: True)


def serves_before_its_epoch_is_committed(replace: Any) -> None:
    """A leader of the quorum commits what earlier leaders have left by counting replicas, and the
    controller serves from then on."""
    from kwire.kraft.raft.quorum import majority_offset
    from kwire.kraft.raft.roles.leader import Leader

    def update(self: Any) -> bool:
        offset = majority_offset(replica.end_offset for replica in self.voters.values())
        if offset < 0 or (self.high_watermark is not None and offset <= self.high_watermark):
            return False
        self.high_watermark = offset
        return True

    replace(Leader, "update_high_watermark", update)


def removed_voter_counts(replace: Any) -> None:
    """A leader goes on with the voters that it was elected by."""
    from kwire.kraft.raft.roles.leader import Leader

    original = Leader.set_voters

    def set_voters(self: Any, voters: Any) -> None:
        if not self.voters:
            original(self, voters)

    replace(Leader, "set_voters", set_voters)


def snapshot_forgets(replace: Any) -> None:
    """Snapshots lack the last of the image's records."""
    from kwire.kraft.images.metadata_image import MetadataImage

    original = MetadataImage.record_source
    replace(
        MetadataImage,
        "record_source",
        lambda self, level=None: iter(list(original(self, level))[:-1]),
    )


def offsets_lost_at_move(replace: Any) -> None:
    """A coordinator that takes over begins with what comes from then on."""
    from kwire.coordinator.loading import Loading

    replace(Loading, "_begin", lambda self: self._at_end(self._log.end_offset(self._partition)))


def partition_given_before_its_release(replace: Any) -> None:
    """A member of a consumer group gets a partition that another one has not given up."""
    from kwire.coordinator.group.consumer import reconcile

    original = reconcile._next

    def following(current: Any, target: Any, epoch: int, owned: Any, holders: Any) -> Any:
        return original(current, target, epoch, owned, {})

    replace(reconcile, "_next", following)


def duplicates_not_known(replace: Any) -> None:
    """A batch that comes again is appended again."""
    from kwire.log.partition.producers import ProducerEntry, Producers

    replace(ProducerEntry, "find_duplicate", lambda self, header: None)
    replace(Producers, "_check_sequence", lambda self, entry, header, offset: None)


def old_leader_not_fenced(replace: Any) -> None:
    """Leader epochs of requests are not looked at (KIP-320), and a leader that another one has
    replaced commits alone."""
    from kwire.replica.partition import Partition
    from kwire.replica.state import ReplicaState

    original = ReplicaState._shrink

    def shrink(self: Any, now_ms: int) -> list[Any]:
        effects = original(self, now_ms)
        if effects:
            self.isr, self.pending_isr, self.min_isr = effects[0].isr, None, 1
            return list(self._advance(now_ms))
        return effects

    replace(Partition, "check_epoch", lambda self, epoch: None)
    replace(ReplicaState, "_shrink", shrink)


def cleaner_drops_whole_batches(replace: Any) -> None:
    """A batch of which one record is superseded is taken out of the log as a whole."""
    from kwire.log.compaction.job import CleaningJob

    original = CleaningJob._kept

    def kept(self: Any, chunk: Any, at: int, header: Any, keeps_legacy: bool) -> Any:
        data = yield from original(self, chunk, at, header, keeps_legacy)
        return data if data is not None and len(data) == header.size_bytes else None

    replace(CleaningJob, "_kept", kept)


def shortages_do_not_heal(replace: Any) -> None:
    """A log that was short of something takes no more appends, also when there is room again."""
    from kwire.log.partition.partition_log import PartitionLog
    from kwire.pending import Pending

    replace(PartitionLog, "resume_appends", lambda self: Pending.failed(OSError("still short")))


def refused_batches_are_not_taken_back(replace: Any) -> None:
    """The sequences of batches that a shortage kept from the file count all the same."""
    from kwire.log.partition.producers import Producers

    replace(Producers, "take_back", lambda self, end_offset: None)


def closed_connection_is_death(replace: Any) -> None:
    """A process whose connection has closed counts as gone, without a refused dial."""
    from kwire.network import refusal

    async def dial(loop: Any, address: Any) -> Any:
        return refusal.Outcome.REFUSED

    replace(refusal, "dial", dial)


def unanswered_dial_is_death(replace: Any) -> None:
    """A dial that nobody answers counts as a refused one."""
    from kwire.network import refusal

    original = refusal.dial

    async def dial(loop: Any, address: Any) -> Any:
        outcome = await original(loop, address)
        return refusal.Outcome.REFUSED if outcome is refusal.Outcome.UNKNOWN else outcome

    replace(refusal, "dial", dial)


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        ack_before_high_watermark,
        high_watermark_beyond_isr,
        min_isr_ignored,
        isr_expanded_before_catch_up,
        truncation_to_stale_high_watermark,
        truncation_skipped,
        dedupe_state_lost_at_failover,
        leader_epoch_not_bumped,
        metadata_answered_before_commit,
        metadata_acknowledged_unsynced,
        fetches_above_the_high_watermark,
        last_stable_offset_ignored,
        aborted_list_lost,
        marker_lost,
        unclean_restart_stays_in_sync,
        transaction_ends_before_commit,
        follower_counts_ahead,
        vote_not_synced,
        votes_twice,
        votes_for_shorter_logs,
        serves_before_its_epoch_is_committed,
        removed_voter_counts,
        snapshot_forgets,
        offsets_lost_at_move,
        partition_given_before_its_release,
        duplicates_not_known,
        old_leader_not_fenced,
        cleaner_drops_whole_batches,
        shortages_do_not_heal,
        refused_batches_are_not_taken_back,
        closed_connection_is_death,
        unanswered_dial_is_death,
        *(mutation for mutation, _, _ in RARE.values()),
    )
}

SEEDS: dict[str, int] = {
    "ack_before_high_watermark": 1,
    "high_watermark_beyond_isr": 1,
    "min_isr_ignored": 1,
    "isr_expanded_before_catch_up": 3,
    "follower_counts_ahead": 1,
    "truncation_to_stale_high_watermark": 1,
    "dedupe_state_lost_at_failover": 3,
    "duplicates_not_known": 1,
    "leader_epoch_not_bumped": 1,
    "old_leader_not_fenced": 1,
    "unclean_restart_stays_in_sync": 1,
    "truncation_skipped": 1,
    "votes_twice": 1,
    "serves_before_its_epoch_is_committed": 1,
    "metadata_answered_before_commit": 1,
    "votes_for_shorter_logs": 1,
    "vote_not_synced": 1,
    "removed_voter_counts": 2,
    "snapshot_forgets": 3,
    "fetches_above_the_high_watermark": 1,
    "last_stable_offset_ignored": 1,
    "aborted_list_lost": 1,
    "transaction_ends_before_commit": 3,
    "metadata_acknowledged_unsynced": 1,
    "marker_lost": 1,
    "offsets_lost_at_move": 1,
    "partition_given_before_its_release": 4,
    "cleaner_drops_whole_batches": 13,
    "shortages_do_not_heal": 1,
    "refused_batches_are_not_taken_back": 1,
    "closed_connection_is_death": 1,
    "unanswered_dial_is_death": 8,
    **{name: seed for name, (_, seed, _) in RARE.items()},
}


AIMED: dict[str, Plan] = {
    "metadata_acknowledged_unsynced": Plan(
        ("acknowledged and lost",), dict(QUICK_ELECTIONS), groups=()
    ),
    "vote_not_synced": Plan(("election storm",), dict(QUICK_ELECTIONS), groups=()),
    "serves_before_its_epoch_is_committed": Plan(
        ("tail of an old epoch",), {**QUICK_ELECTIONS, **ONE_BATCH_A_FETCH}, groups=()
    ),
    "votes_twice": Plan(("two candidates",), dict(QUICK_ELECTIONS), groups=()),
    "removed_voter_counts": Plan(("quorum change", "partition"), dict(QUICK_ELECTIONS), groups=()),
    "unclean_restart_stays_in_sync": Plan(("brokers cut off", "power loss"), groups=()),
    "marker_lost": Plan(("resets",), pause_s=(0.1, 0.5), groups=()),
    "truncation_skipped": Plan(("tail that nobody has",), groups=()),
    "shortages_do_not_heal": Plan(("shortage",), groups=()),
    "refused_batches_are_not_taken_back": Plan(("shortage",), pause_s=(0.3, 2.0), groups=()),
    "unanswered_dial_is_death": Plan(("resets", "partition", "isolation"), groups=()),
    **{name: plan for name, (_, _, plan) in RARE.items()},
}
"""Of those that need a rare row of events: the faults that bring it about, or make it step by step
(`constructed.py`). Their pinned seeds are seeds of these plans."""

_INHERITED = object()


@contextmanager
def applied(name: str | None, mutations: Mapping[str, Mutation] = MUTATIONS) -> Iterator[None]:
    """Run with one mutation, or with none."""
    undo: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, attribute: str, value: Any) -> None:
        assert hasattr(owner, attribute), f"{name} replaces {attribute}, which {owner} has not"
        undo.append((owner, attribute, vars(owner).get(attribute, _INHERITED)))
        setattr(owner, attribute, value)

    if name is not None:
        mutations[name](replace)
    try:
        yield
    finally:
        for owner, attribute, value in reversed(undo):
            if value is _INHERITED:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, value)
