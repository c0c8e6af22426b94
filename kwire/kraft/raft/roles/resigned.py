"""Resigned: a leader that stepped down, or restarted in its own epoch.

It tells the voters that the epoch has ended, in the order in which they should stand, and leaves
the epoch when the election time-out has passed.
"""

from __future__ import annotations

from kwire.kraft.raft.roles.base import Intent, Plan, Role, Surroundings
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, ReplicaKey


class Resigned(Role):
    """Still the leader of the epoch by name, but leading no more."""

    name = RoleName.RESIGNED

    def __init__(
        self,
        epoch: int,
        voter_ids: tuple[int, ...],
        *,
        local_id: int,
        endpoints: Endpoints,
        successors: list[ReplicaKey],
        election_at_ms: int,
    ) -> None:
        super().__init__(epoch, voter_ids)
        self._local_id = local_id
        self._endpoints = endpoints
        self.successors = successors
        self.election_at_ms = election_at_ms
        self.unacknowledged = [voter for voter in voter_ids if voter != local_id]

    @property
    def leader_id(self) -> int:
        return self._local_id

    @property
    def leader_endpoints(self) -> Endpoints:
        return self._endpoints

    def acknowledge(self, voter_id: int) -> None:
        if voter_id in self.unacknowledged:
            self.unacknowledged.remove(voter_id)

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        if now_ms >= self.election_at_ms and not replica.shutting_down:
            return now_ms, (Intent.LEAVE_EPOCH,)
        return self.election_at_ms, (Intent.END_EPOCH,)
