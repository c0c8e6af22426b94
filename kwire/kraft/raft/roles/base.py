"""What all roles have in common.

A role decides and does not act: `poll` names what is due, and the machine above has a function for
each `Intent`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Protocol, TypeAlias

from kwire.kraft.raft.config import RaftConfig
from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.transitions import RoleName
from kwire.kraft.raft.types import Endpoints, ReplicaKey
from kwire.kraft.raft.voters import VoterHistory

FOREVER_MS = 1 << 62
"""A deadline that never comes."""


class Intent(Enum):
    """What a role wants done. The first group ends the role."""

    ASK_FOR_PRE_VOTES = "stand as prospective"
    STAND = "stand as candidate"
    GIVE_UP_PRE_VOTES = "go back to the leader of the epoch, or wait"
    LEAD = "lead the epoch that was won"
    RESIGN = "lead no more"
    LEAVE_EPOCH = "wait for a leader of the next epoch"

    FIND_LEADER = "fetch from a bootstrap server or a voter"
    FETCH = "fetch from the leader"
    UPDATE_VOTER = "tell the leader this voter's listeners and versions, or fetch"
    JOIN_VOTERS = "ask the leader to become a voter, or fetch"
    REQUEST_PRE_VOTES = "ask the voters that have not answered"
    REQUEST_VOTES = "ask the voters that have not answered, for their vote"
    GO_ON_WITH_CHANGE = "go on with the change of the voters"
    BEGIN_EPOCH = "announce the epoch to the voters that do not fetch"
    END_EPOCH = "tell the voters that the epoch is over"


Plan: TypeAlias = tuple[int, tuple[Intent, ...]]
"""When to poll the role again at the latest, and what is to be done now, in order."""


class Surroundings(Protocol):
    """What a role asks about the replica that has it."""

    config: RaftConfig
    voters: VoterHistory
    shutting_down: bool
    update_voter_period_ms: int

    @property
    def is_voter(self) -> bool: ...


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
    def is_led(self) -> bool:
        """Whether somebody leads, as far as this replica can tell: itself, or one that it follows
        and has not missed."""
        return False

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

    def poll(self, replica: Surroundings, now_ms: int) -> Plan:
        """What is due, and when to be asked again at the latest."""
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
