"""What each role wants when, asked of the role alone: it decides, the machine acts."""

from __future__ import annotations

import dataclasses

from kwire.kraft.raft import RaftConfig, machine
from kwire.kraft.raft.roles.base import FOREVER_MS, Intent, Surroundings
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader, PendingChange
from kwire.kraft.raft.roles.nominee import Candidate, Prospective
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.roles.unattached import Unattached
from kwire.kraft.raft.types import ReplicaKey
from kwire.kraft.raft.voters import VoterHistory, VoterSet
from kwire.protocol import messages as m
from tests.support.raft_cluster import CLUSTER_ID, directory_of, endpoint_of, voter_node

IDS = (1, 2, 3)
LOCAL = ReplicaKey(1, directory_of(1))


@dataclasses.dataclass
class Replica:
    """Replica 1 of three, as its role sees it."""

    is_voter: bool = True
    shutting_down: bool = False
    update_voter_period_ms: int = 300
    config: RaftConfig = dataclasses.field(
        default_factory=lambda: RaftConfig(
            1, directory_of(1), CLUSTER_ID, endpoints=(endpoint_of(1),)
        )
    )
    voters: VoterHistory = dataclasses.field(default_factory=lambda: history(1))


def history(level: int) -> VoterHistory:
    found = VoterHistory()
    found.add_level(0, level)
    found.add_voters(0, VoterSet(voter_node(node_id) for node_id in IDS))
    return found


def follower(update_voter_at_ms: int = 500) -> Follower:
    return Follower(
        4,
        IDS,
        leader_id=2,
        leader_endpoints=(endpoint_of(2),),
        voted=None,
        fetch_by_ms=1000,
        update_voter_at_ms=update_voter_at_ms,
    )


def leader(voter_ids: tuple[int, ...] = IDS) -> Leader:
    return Leader(
        4,
        VoterSet(voter_node(node_id) for node_id in voter_ids),
        local=LOCAL,
        endpoints=(endpoint_of(1),),
        start_offset=0,
        granting_voters=[1, 2],
        fetch_timeout_ms=2000,
        now_ms=0,
    )


def test_the_machine_has_a_function_for_every_intent() -> None:
    assert set(machine._INTENTS) == set(Intent)


def test_unattached() -> None:
    role = Unattached(4, IDS, leader_id=None, voted=None, election_at_ms=100)
    assert role.poll(Replica(), 99) == (100, (Intent.FIND_LEADER,))
    assert role.poll(Replica(), 100) == (100, (Intent.ASK_FOR_PRE_VOTES,))
    assert role.poll(Replica(is_voter=False), 100) == (FOREVER_MS, (Intent.FIND_LEADER,))
    assert role.poll(Replica(shutting_down=True), 100) == (FOREVER_MS, ())


def test_prospective() -> None:
    role = Prospective(4, IDS, 1, leader_id=None, leader_endpoints=(), voted=None,
                       election_at_ms=100)  # fmt: skip
    assert role.poll(Replica(), 99) == (100, (Intent.REQUEST_PRE_VOTES,))
    assert role.poll(Replica(), 100) == (100, (Intent.GIVE_UP_PRE_VOTES,))
    assert role.poll(Replica(shutting_down=True), 100) == (100, (Intent.REQUEST_PRE_VOTES,))
    role.tally.record(2, False)
    role.tally.record(3, False)
    assert role.poll(Replica(), 50) == (50, (Intent.GIVE_UP_PRE_VOTES,))
    role.tally.record(3, True)
    assert role.poll(Replica(), 50) == (50, (Intent.STAND,))


def test_candidate() -> None:
    role = Candidate(4, IDS, LOCAL, 100)
    assert role.poll(Replica(), 99) == (100, (Intent.REQUEST_VOTES,))
    assert role.poll(Replica(), 100) == (100, (Intent.ASK_FOR_PRE_VOTES,))
    role.tally.record(2, False)
    role.tally.record(3, False)
    assert role.poll(Replica(), 50) == (100, ()), "a lost election is waited out"
    role.tally.record(2, True)
    assert role.poll(Replica(), 50) == (50, (Intent.LEAD,))


def test_a_follower_that_votes() -> None:
    role = follower()
    assert role.poll(Replica(), 10) == (1000, (Intent.FETCH,))
    assert role.poll(Replica(), 1000) == (1000, (Intent.ASK_FOR_PRE_VOTES,))
    assert role.poll(Replica(shutting_down=True), 1000) == (FOREVER_MS, ())


def test_a_follower_tells_its_leader_what_has_changed() -> None:
    role = follower()
    assert role.poll(Replica(), 600) == (1000, (Intent.FETCH,)), "its entry is right"
    assert role.update_voter_at_ms == 900
    moved = Replica(config=dataclasses.replace(Replica().config, endpoints=(endpoint_of(9),)))
    assert role.poll(moved, 899) == (1000, (Intent.FETCH,)), "once a period"
    assert role.poll(moved, 900) == (1000, (Intent.UPDATE_VOTER,))
    static = Replica(voters=history(0))
    assert role.poll(static, 900) == (1000, (Intent.UPDATE_VOTER,))
    role.has_updated_leader = True
    assert role.poll(static, 900) == (1000, (Intent.FETCH,))


def test_an_observer_never_stands_and_joins_where_it_may() -> None:
    role = follower()
    assert role.poll(Replica(is_voter=False), 400) == (500, (Intent.FETCH,))
    assert role.poll(Replica(is_voter=False), 1000) == (1300, (Intent.FETCH,))
    joining = dataclasses.replace(Replica().config, auto_join=True)
    assert role.poll(Replica(is_voter=False, config=joining), 1300) == (
        FOREVER_MS,
        (Intent.JOIN_VOTERS,),
    )


def test_leader() -> None:
    role = leader()
    begun = role.poll(Replica(), 0)
    assert begun == (role.check_quorum_at_ms, (Intent.BEGIN_EPOCH,))
    again_ms = role.epoch_announced(FOREVER_MS, 0)
    assert role.poll(Replica(), 0) == (min(again_ms, role.check_quorum_at_ms), ())
    role.pending_change = PendingChange(None, m.AddRaftVoterResponse, voter_node(4), until_ms=9)
    assert role.poll(Replica(), 0)[1] == (Intent.GO_ON_WITH_CHANGE,)
    assert role.poll(Replica(), again_ms)[1] == (Intent.GO_ON_WITH_CHANGE, Intent.BEGIN_EPOCH)
    lost_ms = role.check_quorum_at_ms
    assert role.poll(Replica(), lost_ms) == (lost_ms, (Intent.RESIGN,))
    assert role.poll(Replica(shutting_down=True), 5) == (5, (Intent.RESIGN,))


def test_a_leader_alone_waits_for_nothing() -> None:
    role = leader((1,))
    assert role.poll(Replica(), 10_000) == (FOREVER_MS, ())
    role.resign_requested = True
    assert role.poll(Replica(), 10_000) == (10_000, (Intent.RESIGN,))


def test_resigned() -> None:
    role = Resigned(4, IDS, local_id=1, endpoints=(), successors=[], election_at_ms=100)
    assert role.poll(Replica(), 99) == (100, (Intent.END_EPOCH,))
    assert role.poll(Replica(), 100) == (100, (Intent.LEAVE_EPOCH,))
    assert role.poll(Replica(shutting_down=True), 100) == (100, (Intent.END_EPOCH,))


def test_a_replica_is_enough_for_a_role() -> None:
    """The roles ask for no more than this; the type checker says so of `RaftState`."""
    seen: Surroundings = Replica()
    assert seen.is_voter
