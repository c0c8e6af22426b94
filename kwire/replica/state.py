"""What one replica of a partition knows, and what follows from what happens. Pure.

A leader keeps, for every follower, how far it has fetched; the high watermark is the smallest log
end of the in-sync replicas (and of those a pending AlterPartition would add). A follower that has
reached the high watermark and the leader's epoch start is added to the ISR, one that has not caught
up for `replica.lag.time.max.ms` is dropped, both by AlterPartition to the controller: the ISR
changes only when the controller's answer or the metadata says so (KIP-497). A follower fetches from
its leader and truncates where their epochs diverge (KIP-595).

    event                 role      effects
    Assigned              any       BecomeLeader, BecomeFollower, StopReplica, AdvanceHighWatermark
    LogEndMoved           leader    AdvanceHighWatermark
    FollowerFetched       leader    AdvanceHighWatermark, AlterIsr
    Tick                  leader    AlterIsr
    IsrAnswered           leader    AdvanceHighWatermark
    LeaderAnswered        follower  TruncateTo, AdvanceHighWatermark
"""

from __future__ import annotations

from dataclasses import dataclass, field

NO_LEADER = -1
NO_EPOCH = -1


# -- events


@dataclass(frozen=True, slots=True)
class Assigned:
    """The committed metadata of the partition: who leads at which epoch, who replicates."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class LogEndMoved:
    """Our own log is written up to `log_end_offset`."""

    log_end_offset: int


@dataclass(frozen=True, slots=True)
class FollowerFetched:
    """A follower asked for `fetch_offset`: it has everything before."""

    replica_id: int
    replica_epoch: int
    fetch_offset: int
    log_start_offset: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class IsrAnswered:
    """The controller's answer to AlterPartition; `accepted` with the new state, or refused."""

    accepted: bool
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class LeaderAnswered:
    """What a follower learned from its leader's fetch response."""

    high_watermark: int
    log_end_offset: int
    diverging_end_offset: int = -1


Event = Assigned | LogEndMoved | FollowerFetched | Tick | IsrAnswered | LeaderAnswered


# -- effects


@dataclass(frozen=True, slots=True)
class BecomeLeader:
    """Start to lead at this epoch: the log takes the epoch at its end."""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class BecomeFollower:
    """Fetch from `leader_id` at this epoch (from nobody when it is NO_LEADER)."""

    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class StopReplica:
    """We are no longer a replica."""


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before `offset` is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class AlterIsr:
    """Ask the controller for this ISR."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class TruncateTo:
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


@dataclass(slots=True)
class ReplicaState:
    """See the module. `broker_id` is this node; only `step` changes anything."""

    broker_id: int
    lag_time_max_ms: int = 30_000
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
            case LogEndMoved():
                self.log_end_offset = event.log_end_offset
                return self._advance() if self.is_leader else []
            case FollowerFetched():
                return self._follower_fetched(event, now_ms)
            case Assigned():
                return self._assigned(event, now_ms)
            case Tick():
                return self._shrink(now_ms)
            case IsrAnswered():
                return self._isr_answered(event)
            case LeaderAnswered():
                return self._leader_answered(event)

    def _assigned(self, event: Assigned, now_ms: int) -> list[Effect]:
        if event.partition_epoch < self.partition_epoch and event.leader_epoch <= self.leader_epoch:
            return []
        new_epoch = event.leader_epoch != self.leader_epoch
        was_leader = self.is_leader
        self.leader_id = event.leader_id
        self.leader_epoch = event.leader_epoch
        self.partition_epoch = event.partition_epoch
        self.replicas = event.replicas
        self.isr = event.isr
        self.pending_isr = None
        self.log_end_offset = event.log_end_offset
        if self.broker_id not in event.replicas:
            self.followers.clear()
            return [StopReplica()]
        if not self.is_leader:
            self.followers.clear()
            if new_epoch or was_leader:
                return [BecomeFollower(event.leader_id, event.leader_epoch)]
            return []
        others = [replica for replica in event.replicas if replica != self.broker_id]
        if new_epoch:
            self.leader_epoch_start_offset = event.log_end_offset
            self.followers = {
                replica: FollowerProgress(last_caught_up_ms=now_ms) for replica in others
            }
            return [BecomeLeader(event.leader_epoch), *self._advance()]
        self.followers = {
            replica: self.followers.get(replica, FollowerProgress(last_caught_up_ms=now_ms))
            for replica in others
        }
        return self._advance()

    def _advance(self) -> list[Effect]:
        """The high watermark never goes back."""
        mark = self.log_end_offset
        if len(self.replicas) > 1:
            for replica in self.maximal_isr:
                if replica != self.broker_id:
                    progress = self.followers.get(replica)
                    mark = min(mark, -1 if progress is None else progress.log_end_offset)
        if mark <= self.high_watermark:
            return []
        self.high_watermark = mark
        return [AdvanceHighWatermark(mark)]

    def _follower_fetched(self, event: FollowerFetched, now_ms: int) -> list[Effect]:
        progress = self.followers.get(event.replica_id)
        if progress is None or not self.is_leader:
            return []
        if event.fetch_offset >= self.log_end_offset:
            progress.last_caught_up_ms = now_ms
        elif event.fetch_offset >= progress.last_fetch_leader_log_end_offset:
            progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
        progress.log_end_offset = event.fetch_offset
        progress.log_start_offset = event.log_start_offset
        progress.replica_epoch = event.replica_epoch
        progress.last_fetch_ms = now_ms
        progress.last_fetch_leader_log_end_offset = self.log_end_offset
        effects = self._advance()
        if (
            self.pending_isr is None
            and event.replica_id not in self.isr
            and event.fetch_offset >= self.high_watermark
            and event.fetch_offset >= self.leader_epoch_start_offset
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

    def _isr_answered(self, event: IsrAnswered) -> list[Effect]:
        if self.pending_isr is None:
            return []
        self.pending_isr = None
        if event.accepted and event.partition_epoch >= self.partition_epoch:
            self.isr = event.isr
            self.partition_epoch = event.partition_epoch
        return self._advance() if self.is_leader else []

    def _leader_answered(self, event: LeaderAnswered) -> list[Effect]:
        if self.is_leader:
            return []
        effects: list[Effect] = []
        self.log_end_offset = event.log_end_offset
        if 0 <= event.diverging_end_offset < event.log_end_offset:
            self.log_end_offset = event.diverging_end_offset
            effects.append(TruncateTo(event.diverging_end_offset))
        mark = min(event.high_watermark, self.log_end_offset)
        if mark > self.high_watermark:
            self.high_watermark = mark
            effects.append(AdvanceHighWatermark(mark))
        return effects
