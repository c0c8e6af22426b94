"""Follower: fetches from the leader, as a voter or as an observer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.kraft.raft.roles import observer
from kwire.kraft.raft.roles.base import FOREVER_MS, Role
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, OffsetAndEpoch, ReplicaKey

if TYPE_CHECKING:
    from kwire.kraft.raft.state import RaftState


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
        self.has_updated_leader = False
        self.fetching: SnapshotFetch | None = None

    @property
    def leader_id(self) -> int:
        return self._leader_id

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

    def heard_of_leader(self, raft: RaftState, now_ms: int) -> None:
        """Wait another fetch time-out, unless the leader has ended the epoch: what still comes
        from it was sent before."""
        if self.leader_is_gone:
            return
        if self.leader_refuses:
            self.leader_refuses = False
            raft.hurry = (-1, 0)
        raft.leader_heard = (self._leader_id, now_ms)
        self.fetch_by_ms = now_ms + raft.config.fetch_timeout_ms

    def poll(self, raft: RaftState, now_ms: int) -> int:
        if raft.shutting_down:
            return FOREVER_MS
        if not raft.is_voter:
            return observer.poll(self, raft, now_ms)
        if now_ms >= self.fetch_by_ms:
            raft.become_prospective(now_ms)
            return now_ms
        deadline_ms = self.fetch_by_ms
        if now_ms >= self.update_voter_at_ms:
            if raft.changes.should_update_voter(raft, self):
                if raft.changes.send_update_voter(raft, self, now_ms):
                    self.update_voter_at_ms = now_ms + raft.update_voter_period_ms
                    return min(deadline_ms, self.update_voter_at_ms)
            else:
                self.update_voter_at_ms = now_ms + raft.update_voter_period_ms
        return min(deadline_ms, raft.fetch_from_leader(self, now_ms))
