"""Unattached: follows nobody. With a vote it is Kafka's former state "voted"."""

from __future__ import annotations

from kwire.kraft.raft.roles.base import (
    FOREVER_MS,
    Intent,
    Plan,
    Role,
    Surroundings,
    grants_unless_decided,
)
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import ReplicaKey, check


class Unattached(Role):
    """A replica that knows no leader it could fetch from.

    It asks the bootstrap servers for one; a voter stands for election when `election_at_ms` has
    come. It may know the id of a leader whose address it lacks.
    """

    name = RoleName.UNATTACHED

    def __init__(
        self,
        epoch: int,
        voter_ids: tuple[int, ...],
        *,
        leader_id: int | None,
        voted: ReplicaKey | None,
        election_at_ms: int,
    ) -> None:
        super().__init__(epoch, voter_ids)
        self._leader_id = leader_id
        self._voted = voted
        self.election_at_ms = election_at_ms

    @property
    def leader_id(self) -> int | None:
        return self._leader_id

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
        if replica.shutting_down:
            return FOREVER_MS, ()
        if not replica.is_voter:
            return FOREVER_MS, (Intent.FIND_LEADER,)
        if now_ms >= self.election_at_ms:
            return now_ms, (Intent.ASK_FOR_PRE_VOTES,)
        return self.election_at_ms, (Intent.FIND_LEADER,)
