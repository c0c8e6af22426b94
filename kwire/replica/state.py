"""What one replica of a partition knows, and what follows from what happens. Pure.

A leader keeps, for every follower, how far it has fetched; the high watermark is the smallest log
end of the in-sync replicas, of those a pending AlterPartition would add, and of those that are
about to be (caught up, but not in the ISR yet). It stands still while the ISR is smaller than
min.insync.replicas (KIP-966). A follower that has reached the high watermark and the leader's epoch
start is added to the ISR, one that has not caught up for `replica.lag.time.max.ms` is dropped, both
by AlterPartition to the controller: the ISR changes only when the controller's answer or the
metadata says so (KIP-497). While nobody knows whether the controller has executed an
AlterPartition, the larger ISR counts. A follower fetches from its leader and truncates where their
epochs diverge (KIP-595).

    event                 role      effects
    LogOpened             any       none
    Assigned              any       BecomeLeader, BecomeFollower, StopReplica, AdvanceHighWatermark
    Removed               any       none
    LogEndMoved           leader    AdvanceHighWatermark
    FollowerFetched       leader    AdvanceHighWatermark, AlterIsr
    Tick                  leader    AlterIsr
    IsrAnswered           leader    AdvanceHighWatermark
    MinIsrChanged         leader    AdvanceHighWatermark
    LeaderAnswered        follower  TruncateTo, AdvanceHighWatermark
    LogRestarted          follower  none
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

NO_LEADER = -1
NO_EPOCH = -1
LONG_AGO_MS = -(1 << 62)


# -- events


class LogOpened(NamedTuple):
    """Our log is open: how much of it is known to be committed, and what its topic demands."""

    high_watermark: int
    min_isr: int


class Assigned(NamedTuple):
    """The committed metadata of the partition: who leads at which epoch, who replicates.

    `log_end_offset` is where our log is written up to, `next_offset` where it ends with what is
    still being written: a new leader's epoch starts there.
    """

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_end_offset: int
    next_offset: int = -1


class Removed(NamedTuple):
    """This node hosts the partition no longer."""


class LogEndMoved(NamedTuple):
    """Our own log is written up to `log_end_offset`."""

    log_end_offset: int


class FollowerFetched(NamedTuple):
    """A follower asked for `fetch_offset`: it has everything before."""

    replica_id: int
    replica_epoch: int
    fetch_offset: int
    log_start_offset: int


class Tick(NamedTuple):
    """Time has passed."""


class IsrAnswered(NamedTuple):
    """The controller's answer to AlterPartition: `accepted` with the new state, or refused for
    sure. `asked_at` is the partition epoch of the question; another one is not ours any more."""

    accepted: bool
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    asked_at: int | None = None


class MinIsrChanged(NamedTuple):
    """`min.insync.replicas` of the topic is `min_isr` now."""

    min_isr: int


class LeaderAnswered(NamedTuple):
    """What a follower learned from its leader's fetch response."""

    high_watermark: int
    log_end_offset: int
    diverging_end_offset: int = -1


class LogRestarted(NamedTuple):
    """Our log was dropped and begins anew at `log_start_offset`, where its leader's does."""

    log_start_offset: int


Event = (
    LogOpened
    | Assigned
    | Removed
    | LogEndMoved
    | FollowerFetched
    | Tick
    | IsrAnswered
    | LeaderAnswered
    | LogRestarted
    | MinIsrChanged
)


# -- effects


class BecomeLeader(NamedTuple):
    """Start to lead at this epoch: the log takes the epoch at its end."""

    leader_epoch: int


class BecomeFollower(NamedTuple):
    """Fetch from `leader_id` at this epoch (from nobody when it is NO_LEADER)."""

    leader_id: int
    leader_epoch: int


class StopReplica(NamedTuple):
    """We are no longer a replica."""


class AdvanceHighWatermark(NamedTuple):
    """Everything before `offset` is committed."""

    offset: int


class AlterIsr(NamedTuple):
    """Ask the controller for this ISR."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class TruncateTo(NamedTuple):
    """Our log and the leader's part ways at `offset`."""

    offset: int


Effect = BecomeLeader | BecomeFollower | StopReplica | AdvanceHighWatermark | AlterIsr | TruncateTo


@dataclass(slots=True)
class FollowerProgress:
    """How far one follower is, as its leader sees it."""

    log_end_offset: int = -1
    log_start_offset: int = -1
    replica_epoch: int = -1
    last_fetch_ms: int = 0
    last_fetch_leader_log_end_offset: int = 0
    last_caught_up_ms: int = 0


def always_eligible(replica_id: int, replica_epoch: int) -> bool:
    """For a replica whose cluster is not known."""
    return True


@dataclass(slots=True)
class ReplicaState:
    """See the module. `broker_id` is this node; only `step` and `end_moved_alone` change anything.

    `is_eligible(replica id, broker epoch or -1)` says whether the metadata lets that broker into an
    ISR: it lives, is not on its way out, and the epoch is its newest (KIP-903).
    """

    broker_id: int
    lag_time_max_ms: int = 30_000
    is_eligible: Callable[[int, int], bool] = field(
        default=always_eligible, repr=False, compare=False
    )
    min_isr: int = 1
    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    pending_isr: tuple[int, ...] | None = None
    high_watermark: int = 0
    log_end_offset: int = 0
    leader_epoch_start_offset: int = 0
    followers: dict[int, FollowerProgress] = field(default_factory=dict)

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.broker_id

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The ISR with whom a pending AlterPartition would add: all of them hold the mark back."""
        if self.pending_isr is None:
            return self.isr
        return self.isr + tuple(r for r in self.pending_isr if r not in self.isr)

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event in; returns what has to be done, in order."""
        match event:
            case FollowerFetched():
                return self._follower_fetched(event, now_ms)
            case LogEndMoved():
                self.log_end_offset = event.log_end_offset
                return self._advance(now_ms) if self.is_leader else []
            case Assigned():
                return self._assigned(event, now_ms)
            case Tick():
                return self._shrink(now_ms)
            case IsrAnswered():
                return self._isr_answered(event, now_ms)
            case LeaderAnswered():
                return self._leader_answered(event)
            case LogRestarted():
                self.high_watermark = self.log_end_offset = event.log_start_offset
                return []
            case LogOpened():
                self.high_watermark, self.min_isr = event.high_watermark, event.min_isr
                return []
            case Removed():
                self.leader_id = NO_LEADER
                return []
            case MinIsrChanged():
                self.min_isr = event.min_isr
                return self._advance(now_ms) if self.is_leader else []

    def end_moved_alone(self, log_end_offset: int) -> bool:
        """`step` of LogEndMoved at a leader that is the only replica: whether the high watermark
        has moved to that end. Every write of such a partition comes by here."""
        self.log_end_offset = log_end_offset
        if log_end_offset <= self.high_watermark:
            return False
        self.high_watermark = log_end_offset
        return True

    def _assigned(self, event: Assigned, now_ms: int) -> list[Effect]:
        if event.partition_epoch < self.partition_epoch and event.leader_epoch <= self.leader_epoch:
            return []
        new_epoch = event.leader_epoch != self.leader_epoch
        was_leader = self.is_leader
        if new_epoch or event.partition_epoch != self.partition_epoch:
            self.pending_isr = None
        self.leader_id = event.leader_id
        self.leader_epoch = event.leader_epoch
        self.partition_epoch = event.partition_epoch
        self.replicas = event.replicas
        self.isr = event.isr
        self.log_end_offset = event.log_end_offset
        if self.broker_id not in event.replicas:
            self.followers.clear()
            return [StopReplica()]
        if not self.is_leader:
            self.followers.clear()
            if new_epoch or was_leader:
                return [BecomeFollower(event.leader_id, event.leader_epoch)]
            return []
        known = {} if new_epoch else self.followers
        self.followers = {
            replica: known.get(replica) or self._new_follower(replica, now_ms)
            for replica in event.replicas
            if replica != self.broker_id
        }
        if not new_epoch:
            return self._advance(now_ms)
        self.leader_epoch_start_offset = max(event.log_end_offset, event.next_offset)
        return [BecomeLeader(event.leader_epoch), *self._advance(now_ms)]

    def _new_follower(self, replica: int, now_ms: int) -> FollowerProgress:
        """Whoever is in the ISR counts as caught up until the lag time is over."""
        caught_up_ms = now_ms if replica in self.isr else LONG_AGO_MS
        return FollowerProgress(last_caught_up_ms=caught_up_ms)

    def _advance(self, now_ms: int) -> list[Effect]:
        """The high watermark never goes back."""
        mark = self.log_end_offset
        replica_count = len(self.replicas)
        if replica_count > 1:
            if len(self.isr) < self.min_isr and len(self.isr) < replica_count:
                return []
            for replica, progress in self.followers.items():
                if progress.log_end_offset < mark and (
                    replica in self.maximal_isr or self._is_about_to_join(replica, progress, now_ms)
                ):
                    mark = progress.log_end_offset
        if mark <= self.high_watermark:
            return []
        self.high_watermark = mark
        return [AdvanceHighWatermark(mark)]

    def _is_about_to_join(self, replica: int, progress: FollowerProgress, now_ms: int) -> bool:
        """Without waiting for it, a follower close behind a busy leader would never get in."""
        return (
            progress.last_caught_up_ms != LONG_AGO_MS
            and now_ms - progress.last_caught_up_ms <= self.lag_time_max_ms
            and self.is_eligible(replica, progress.replica_epoch)
        )

    def _follower_fetched(self, event: FollowerFetched, now_ms: int) -> list[Effect]:
        progress = self.followers.get(event.replica_id)
        if progress is None or self.leader_id != self.broker_id:
            return []
        if 0 <= event.replica_epoch < progress.replica_epoch:
            return []  # an earlier life of that broker
        if event.fetch_offset >= self.log_end_offset:
            progress.last_caught_up_ms = now_ms
        elif event.fetch_offset >= progress.last_fetch_leader_log_end_offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.log_end_offset = event.fetch_offset
        progress.log_start_offset = event.log_start_offset
        progress.replica_epoch = event.replica_epoch
        progress.last_fetch_ms = now_ms
        progress.last_fetch_leader_log_end_offset = self.log_end_offset
        effects = self._advance(now_ms)
        if (
            self.pending_isr is None
            and event.replica_id not in self.isr
            and event.fetch_offset >= self.high_watermark
            and event.fetch_offset >= self.leader_epoch_start_offset
            and self.is_eligible(event.replica_id, event.replica_epoch)
        ):
            effects.append(self._alter((*self.isr, event.replica_id)))
        return effects

    def _shrink(self, now_ms: int) -> list[Effect]:
        if not self.is_leader or self.pending_isr is not None:
            return []
        kept = tuple(replica for replica in self.isr if not self._lags(replica, now_ms))
        return [] if kept == self.isr else [self._alter(kept)]

    def _lags(self, replica: int, now_ms: int) -> bool:
        if replica == self.broker_id:
            return False
        progress = self.followers.get(replica)
        if progress is None:
            return True
        if progress.log_end_offset == self.log_end_offset:
            return False
        return now_ms - progress.last_caught_up_ms > self.lag_time_max_ms

    def _alter(self, isr: tuple[int, ...]) -> AlterIsr:
        self.pending_isr = isr
        return AlterIsr(isr, self.leader_epoch, self.partition_epoch)

    def _isr_answered(self, event: IsrAnswered, now_ms: int) -> list[Effect]:
        if self.pending_isr is None:
            return []
        if event.asked_at is not None and event.asked_at != self.partition_epoch:
            return []
        self.pending_isr = None
        if event.accepted and event.partition_epoch >= self.partition_epoch:
            self.isr = event.isr
            self.partition_epoch = event.partition_epoch
        return self._advance(now_ms) if self.is_leader else []

    def _leader_answered(self, event: LeaderAnswered) -> list[Effect]:
        if self.is_leader:
            return []
        effects: list[Effect] = []
        self.log_end_offset = event.log_end_offset
        if 0 <= event.diverging_end_offset <= event.log_end_offset:
            # At the very end of the log too: an epoch in which nothing was written is dropped.
            self.log_end_offset = event.diverging_end_offset
            self.high_watermark = min(self.high_watermark, event.diverging_end_offset)
            effects.append(TruncateTo(event.diverging_end_offset))
        mark = min(event.high_watermark, self.log_end_offset)
        if mark > self.high_watermark:
            self.high_watermark = mark
            effects.append(AdvanceHighWatermark(mark))
        return effects
