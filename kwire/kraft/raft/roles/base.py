"""What all roles have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, ReplicaKey

if TYPE_CHECKING:
    from kwire.kraft.raft.state import RaftState

FOREVER_MS = 1 << 62
"""A deadline that never comes."""


class Role:
    """The part of a replica's state that ends when its role or epoch changes."""

    name: ClassVar[RoleName]

    def __init__(self, epoch: int, voter_ids: tuple[int, ...]) -> None:
        self.epoch = epoch
        self.voter_ids = voter_ids

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch, if known."""
        return None

    @property
    def leader_endpoints(self) -> Endpoints:
        return ()

    @property
    def voted(self) -> ReplicaKey | None:
        """Whom this replica voted for in the epoch."""
        return None

    @property
    def election(self) -> ElectionState:
        """What `quorum-state` must say."""
        return ElectionState(self.epoch, self.leader_id, self.voted, self.voter_ids)

    def can_grant_vote(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """Whether the candidate, whose log is `up_to_date` or not, gets this replica's vote."""
        raise NotImplementedError

    def poll(self, raft: RaftState, now_ms: int) -> int:
        """Do what is due; the time at which to be called again at the latest."""
        raise NotImplementedError


def grants_unless_decided(
    role: Role, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
) -> bool:
    """The rule of a replica that follows nobody: one vote an epoch, none once a leader is known.

    A pre-vote (KIP-996) promises nothing and is granted to every candidate that could win.
    """
    if pre_vote:
        return up_to_date
    if role.voted is not None:
        return role.voted.id == candidate.id and role.voted.directory_id in (
            None,
            candidate.directory_id,
        )
    return role.leader_id is None and up_to_date
