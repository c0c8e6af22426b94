"""Prospective (asks for pre-votes, KIP-996) and candidate (asks for votes)."""

from __future__ import annotations

from kwire.kraft.raft.quorum import Tally
from kwire.kraft.raft.roles.base import (
    Intent,
    Plan,
    Role,
    Surroundings,
    grants_unless_decided,
)
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, ReplicaKey, check


class Nominee(Role):
    """A replica that collects votes until `election_at_ms`, its own among them."""

    def __init__(
        self, epoch: int, voter_ids: tuple[int, ...], local_id: int, election_at_ms: int
    ) -> None:
        super().__init__(epoch, voter_ids)
        self.election_at_ms = election_at_ms
        self.tally = Tally(voter_ids)
        self.tally.record(local_id, True)


class Prospective(Nominee):
    """Would it win? Only with a majority of pre-votes it raises the epoch and stands.

    It keeps the leader and the vote of its epoch, so that a loss changes nothing.
    """

    name = RoleName.PROSPECTIVE

    def __init__(
        self,
        epoch: int,
        voter_ids: tuple[int, ...],
        local_id: int,
        *,
        leader_id: int | None,
        leader_endpoints: Endpoints,
        voted: ReplicaKey | None,
        election_at_ms: int,
        leader_is_gone: bool = False,
    ) -> None:
        super().__init__(epoch, voter_ids, local_id, election_at_ms)
        self._leader_id = leader_id
        self._leader_endpoints = leader_endpoints
        self._voted = voted
        self.leader_is_gone = leader_is_gone

    @property
    def leader_id(self) -> int | None:
        return self._leader_id

    @property
    def leader_endpoints(self) -> Endpoints:
        return self._leader_endpoints

    @property
    def voted(self) -> ReplicaKey | None:
        return self._voted

    def vote_for(self, candidate: ReplicaKey) -> None:
        """Once an epoch."""
        check(self._voted is None, f"second vote in epoch {self.epoch}")
        self._voted = candidate

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return grants_unless_decided(self, candidate, up_to_date, pre_vote)

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        if self.tally.won:
            return now_ms, (Intent.STAND,)
        if not replica.shutting_down and (now_ms >= self.election_at_ms or self.tally.lost):
            return now_ms, (Intent.GIVE_UP_PRE_VOTES,)
        return self.election_at_ms, (Intent.REQUEST_PRE_VOTES,)


class Candidate(Nominee):
    """Stands for leader of its epoch; it has voted for itself."""

    name = RoleName.CANDIDATE

    def __init__(
        self,
        epoch: int,
        voter_ids: tuple[int, ...],
        local: ReplicaKey,
        election_at_ms: int,
    ) -> None:
        super().__init__(epoch, voter_ids, local.id, election_at_ms)
        self._local = local

    @property
    def voted(self) -> ReplicaKey | None:
        return self._local

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        if self.tally.won:
            return now_ms, (Intent.LEAD,)
        if now_ms >= self.election_at_ms and not replica.shutting_down:
            return now_ms, (Intent.ASK_FOR_PRE_VOTES,)
        if self.tally.lost:
            return self.election_at_ms, ()
        return self.election_at_ms, (Intent.REQUEST_VOTES,)
