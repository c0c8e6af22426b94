"""Follower: fetches from the leader, as a voter or as an observer.

An observer does not vote and never times out into an election. One that may vote joins the voters
by itself where `controller.quorum.auto.join.enable` says so (KIP-853): it asks the leader to add
it, after removing what its node id had before under another directory.
"""

from __future__ import annotations

from kwire.kraft.raft.roles.base import FOREVER_MS, Intent, Plan, Role, Surroundings
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, OffsetAndEpoch, ReplicaKey


class SnapshotFetch:
    """A snapshot on its way from the leader; `freezing` once its last byte is here."""

    __slots__ = ("freezing", "position", "snapshot")

    def __init__(self, snapshot: OffsetAndEpoch) -> None:
        self.snapshot = snapshot
        self.position = 0
        self.freezing = False


class Follower(Role):
    """A replica that knows its leader and the leader's address.

    When nothing is heard of the leader until `fetch_by_ms`, a voter asks for pre-votes.
    """

    name = RoleName.FOLLOWER

    def __init__(
        self,
        epoch: int,
        voter_ids: tuple[int, ...],
        *,
        leader_id: int,
        leader_endpoints: Endpoints,
        voted: ReplicaKey | None,
        fetch_by_ms: int,
        update_voter_at_ms: int,
    ) -> None:
        super().__init__(epoch, voter_ids)
        self._leader_id = leader_id
        self._leader_endpoints = leader_endpoints
        self._voted = voted
        self.fetch_by_ms = fetch_by_ms
        self.update_voter_at_ms = update_voter_at_ms
        self.has_fetched = False
        self.leader_is_gone = False  # it has said so
        self.leader_refuses = False  # its machine has, until it is heard of again
        self.leader_is_silent = False  # a pre-vote because of that was lost; until it is heard of
        self.has_updated_leader = False
        self.fetching: SnapshotFetch | None = None

    @property
    def leader_id(self) -> int:
        return self._leader_id

    @property
    def is_led(self) -> bool:
        return not (self.leader_is_gone or self.leader_refuses or self.leader_is_silent)

    @property
    def leader_endpoints(self) -> Endpoints:
        return self._leader_endpoints

    @property
    def voted(self) -> ReplicaKey | None:
        return self._voted

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """Never against a leader that answers; one not reached yet, or that has resigned, may be
        gone."""
        is_lost = self.leader_is_gone or self.leader_refuses or not self.has_fetched
        return pre_vote and up_to_date and is_lost

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        if replica.shutting_down:
            return FOREVER_MS, ()
        if not replica.is_voter:
            return self._poll_as_observer(replica, now_ms)
        if now_ms >= self.fetch_by_ms:
            return now_ms, (Intent.ASK_FOR_PRE_VOTES,)
        if now_ms >= self.update_voter_at_ms:
            if self._should_update_voter(replica):
                return self.fetch_by_ms, (Intent.UPDATE_VOTER,)
            self.update_voter_at_ms = now_ms + replica.update_voter_period_ms
        return self.fetch_by_ms, (Intent.FETCH,)

    def _poll_as_observer(self, replica: Surroundings, now_ms: int) -> Plan:
        if now_ms >= self.update_voter_at_ms:
            if _should_join(replica):
                # While a Fetch is out its turn comes when that has been answered.
                return FOREVER_MS, (Intent.JOIN_VOTERS,)
            self.update_voter_at_ms = now_ms + replica.update_voter_period_ms
            if self.update_voter_at_ms <= now_ms:
                return FOREVER_MS, (Intent.FETCH,)
        return self.update_voter_at_ms, (Intent.FETCH,)

    def _should_update_voter(self, replica: Surroundings) -> bool:
        """Whether the leader must be told this voter's listeners and versions."""
        if replica.voters.level == 0:
            return not self.has_updated_leader
        return replica.voters.voters.needs_update(replica.config.voter_node)


def _should_join(replica: Surroundings) -> bool:
    """Whether an observer asks to become a voter by itself."""
    config = replica.config
    return config.can_be_voter and config.auto_join and replica.voters.level >= 1
