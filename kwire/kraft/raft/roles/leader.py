"""Leader: knows how far every replica is, moves the high watermark, keeps its majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.quorum import (
    UNKNOWN_OFFSET,
    fetches_for_check_quorum,
    majority_offset,
)
from kwire.kraft.raft.roles.base import FOREVER_MS, Intent, Plan, Role, Surroundings
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for so long is forgotten."""

CAUGHT_UP_MS = 3_600_000
"""A new voter must have been at the log's end within this time."""


@dataclass
class Replica:
    """How far a replica is, as its fetches tell. Times are -1 while there was none."""

    key: ReplicaKey
    endpoints: Endpoints = ()
    end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_last_fetch: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(now_ms, self.last_caught_up_ms)
        elif 0 < self.leader_end_at_last_fetch <= offset:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self.leader_end_at_last_fetch = leader_end_offset
        self.last_fetch_ms = max(now_ms, self.last_fetch_ms)
        self.end_offset = offset


ChangeRequest: TypeAlias = "msg.Request[m.AddRaftVoterRequest | m.RemoveRaftVoterRequest]"
ChangeResponse: TypeAlias = "m.AddRaftVoterResponse | m.RemoveRaftVoterResponse"


@dataclass(slots=True)
class PendingChange:
    """The change of the voters that the leader is busy with: first `asked` (ApiVersions), then
    `end_offset` must be committed."""

    request: ChangeRequest
    response_class: type[m.AddRaftVoterResponse] | type[m.RemoveRaftVoterResponse]
    node: VoterNode
    until_ms: int
    ack_when_committed: bool = True
    asked: bool = False
    end_offset: int | None = None
    answered: bool = False

    def response(self, code: ErrorCode, text: str | None = None) -> ChangeResponse:
        return self.response_class(error_code=code, error_message=text)


class Leader(Role):
    """The leader of an epoch. `high_watermark` is None until a record of the epoch is committed."""

    name = RoleName.LEADER

    def __init__(
        self,
        epoch: int,
        voters: VoterSet,
        *,
        local: ReplicaKey,
        endpoints: Endpoints,
        start_offset: int,
        granting_voters: list[int],
        fetch_timeout_ms: int,
        now_ms: int,
    ) -> None:
        super().__init__(epoch, tuple(voters.ids))
        self._local = local
        self._endpoints = endpoints
        self.start_offset = start_offset
        self.granting_voters = granting_voters
        self.high_watermark: int | None = None
        self.announced = False
        self.resign_requested = False
        self.voters: dict[int, Replica] = {}
        self.observers: dict[ReplicaKey, Replica] = {}
        self.pending_change: PendingChange | None = None
        self.upgrade_voters: VoterSet | None = None
        self._fetched: dict[int, None] = {}
        self._check_quorum_ms = fetch_timeout_ms * 3 // 2
        self._begin_epoch_ms = fetch_timeout_ms // 2
        self.check_quorum_at_ms = now_ms + self._check_quorum_ms
        self.begin_epoch_at_ms = now_ms
        self.set_voters(voters)

    @property
    def is_led(self) -> bool:
        return True

    @property
    def leader_id(self) -> int:
        return self._local.id

    @property
    def leader_endpoints(self) -> Endpoints:
        return self._endpoints

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return False

    def set_voters(self, voters: VoterSet) -> None:
        """Count with other voters from now on; what is known of a replica is kept."""
        before = dict(self.voters)
        self.voters = {}
        for node in voters.nodes:
            known = before.pop(node.key.id, None)
            if known is not None and node.key.directory_id not in (None, known.key.directory_id):
                self.observers[known.key] = known
                known = None
            if known is None:
                known = self.observers.pop(node.key, None) or Replica(node.key)
            known.key, known.endpoints = node.key, node.endpoints
            self.voters[node.key.id] = known
        for replica in before.values():
            self.observers[replica.key] = replica
        self.voter_ids = tuple(self.voters)
        self._fetches_needed = fetches_for_check_quorum(
            len(self.voters), self.is_voter(self._local)
        )

    def is_voter(self, key: ReplicaKey) -> bool:
        replica = self.voters.get(key.id)
        return replica is not None and replica.key.directory_id in (None, key.directory_id)

    def replica(self, key: ReplicaKey) -> Replica:
        """What is known of a replica; an observer is known from its first fetch on."""
        if self.is_voter(key):
            return self.voters[key.id]
        replica = self.observers.get(key)
        if replica is None:
            replica = self.observers[key] = Replica(key)
        return replica

    def caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        replica = self.voters[key.id] if self.is_voter(key) else self.observers.get(key)
        return (
            replica is not None
            and replica.last_caught_up_ms >= 0
            and replica.last_fetch_ms >= 0
            and replica.last_fetch_ms > now_ms - CAUGHT_UP_MS
        )

    def local_flushed(self, end_offset: int) -> bool:
        """This replica's own records are durable up to `end_offset`; whether the high watermark
        moved."""
        replica = self.voters.get(self._local.id)
        if replica is None or not self.is_voter(self._local):
            return False
        replica.end_offset = max(replica.end_offset, end_offset)
        return self.update_high_watermark()

    def replica_fetched(
        self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: int
    ) -> bool:
        """A replica has everything before `offset`; whether the high watermark moved."""
        if key.id < 0:
            return False
        self.voter_alive(key, now_ms)
        replica = self.replica(key)
        replica.fetched(offset, leader_end_offset, now_ms)
        return replica is self.voters.get(key.id) and self.update_high_watermark()

    def update_high_watermark(self) -> bool:
        """Only a record of this very epoch commits what came before it (Raft, 5.4.2)."""
        offset = majority_offset([replica.end_offset for replica in self.voters.values()])
        if offset <= self.start_offset:
            return False
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def voter_alive(self, key: ReplicaKey, now_ms: int) -> None:
        """A fetch of another voter counts for check-quorum."""
        if key.id == self._local.id or not self.is_voter(key):
            return
        self._fetched[key.id] = None
        if len(self._fetched) >= self._fetches_needed:
            self._fetched.clear()
            self.check_quorum_at_ms = now_ms + self._check_quorum_ms

    def successors(self) -> list[ReplicaKey]:
        """The other voters, those that are furthest first."""
        others = [replica for replica in self.voters.values() if replica.key.id != self._local.id]
        return [replica.key for replica in sorted(others, key=lambda r: (-r.end_offset, r.key.id))]

    def forget_lost_observers(self, now_ms: int) -> None:
        for key, replica in list(self.observers.items()):
            if key != self._local and now_ms - replica.last_fetch_ms >= OBSERVER_SESSION_MS:
                del self.observers[key]

    def silent_voters(self, now_ms: int) -> list[Replica]:
        """The other voters that have not fetched lately."""
        return [
            replica
            for replica in self.voters.values()
            if replica.key.id != self._local.id
            and (
                replica.last_fetch_ms < 0 or now_ms - replica.last_fetch_ms >= self._begin_epoch_ms
            )
        ]

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        alone = len(self.voters) == 1 and self.is_voter(self._local)
        lost_majority = not alone and now_ms >= self.check_quorum_at_ms
        if lost_majority or self.resign_requested or replica.shutting_down:
            return now_ms, (Intent.RESIGN,)
        intents: tuple[Intent, ...] = ()
        if self.pending_change is not None:
            intents = (Intent.GO_ON_WITH_CHANGE,)
        if alone:
            return FOREVER_MS, intents
        if now_ms >= self.begin_epoch_at_ms:
            return self.check_quorum_at_ms, (*intents, Intent.BEGIN_EPOCH)
        return min(self.check_quorum_at_ms, self.begin_epoch_at_ms), intents

    def epoch_announced(self, retry_at_ms: int, now_ms: int) -> int:
        """The epoch was announced to the voters that do not fetch; when to do so again."""
        self.begin_epoch_at_ms = min(retry_at_ms, now_ms + self._begin_epoch_ms)
        return self.begin_epoch_at_ms
