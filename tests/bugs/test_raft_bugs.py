"""Faults that Kafka's quorum once had, as short scripts over simulated replicas.

The transcripts of the same situations, line by line, are in `tests/golden/raft`.
"""

from __future__ import annotations

from typing import Any

from kwire.kraft.raft.messages import DeletePrefix
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.types import OffsetAndEpoch, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet
from tests.support.raft_script import Script


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes(15) + bytes([node_id]))


def run(*commands: str) -> Script:
    script = Script()
    for command in commands:
        script.execute(command)
    return script


def raft(script: Script, node_id: int) -> Any:
    return script.cluster.nodes[node_id].raft


def test_kafka_10527_a_leader_that_restarts_does_not_lead_its_epoch_again() -> None:
    """It may have lost records of that epoch that it had not flushed, and would write others at
    the same offsets: a record would no longer be told by its offset and epoch."""
    script = run("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20")
    assert raft(script, 1).is_leader
    epoch = raft(script, 1).epoch
    script.execute("crash 1")
    script.execute("start 1")
    assert raft(script, 1).epoch == epoch
    assert not raft(script, 1).is_leader
    script.execute("run 5000")
    leaders = [i for i in (1, 2, 3) if raft(script, i).is_leader]
    assert len(leaders) == 1
    assert raft(script, leaders[0]).epoch > epoch


def test_kafka_12619_nothing_is_committed_before_a_record_of_the_leaders_own_epoch() -> None:
    """What an earlier leader had replicated counts only once the new leader's first record is on a
    majority too; Kafka was off by one and took its offset for enough."""
    leader = Leader(
        2,
        VoterSet([VoterNode(key_of(i), (), 0, 1) for i in (1, 2, 3)]),
        local=key_of(1),
        endpoints=(),
        start_offset=10,
        granting_voters=[1, 2],
        fetch_timeout_ms=2000,
        now_ms=0,
    )
    assert not leader.local_flushed(11)
    assert not leader.replica_fetched(key_of(2), 10, 11, 5)
    assert leader.high_watermark is None
    assert leader.replica_fetched(key_of(2), 11, 11, 6)
    assert leader.high_watermark == 11


def test_kafka_15489_a_leader_without_a_majority_resigns() -> None:
    """Cut off from both followers it would go on as the controller of whoever still reaches it,
    beside the one that the others elect."""
    script = run("cluster 1 2 3", "start", "run 1100")
    assert raft(script, 1).is_leader
    script.execute("cut 1<>2")
    script.execute("cut 1<>3")
    script.execute("run 5000")
    assert not raft(script, 1).is_leader
    assert sum(raft(script, i).is_leader for i in (2, 3)) == 1


def test_kafka_17608_a_leader_that_is_removed_from_the_voters_goes_on_until_it_is_committed() -> (
    None
):
    """Kafka's controller crashed when the active one was removed; it leads until the removal is
    committed by the remaining voters, and then lets them elect one of them."""
    script = run("cluster 1 2 3", "start", "run 1100")
    script.execute("remove-voter 1 via 1")
    script.execute("run 6000")
    assert raft(script, 1) is not None
    assert not raft(script, 1).is_leader
    assert sum(raft(script, i).is_leader for i in (2, 3)) == 1
    assert not any(voter.id == 1 for voter in raft(script, 2).voters.voters.keys)


def voter_ids(script: Script, node_id: int) -> list[int]:
    return sorted(voter.id for voter in raft(script, node_id).voters.voters.keys)


def test_kafka_16530_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    """Its own log was taken for that of a voter: a removal that one of the two remaining voters
    had was committed. And when those went silent it did not resign (KAFKA-16531)."""
    script = run("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20", "cut 1<>3")
    leader = raft(script, 1)
    before = leader.log.high_watermark
    script.execute("remove-voter 1 via 1")
    script.execute("run 300")
    assert voter_ids(script, 1) == voter_ids(script, 2) == [2, 3]
    assert leader.is_leader
    assert leader.log.high_watermark == before, "only 2 of 2 and 3 has the removal"
    script.execute("run 8000")
    assert not raft(script, 1).is_leader, "it has a majority of 1, 2 and 3, not of 2 and 3"
    script.execute("heal")
    script.execute("run 8000")
    assert raft(script, 2).is_leader, "3 does not have the removal"
    assert raft(script, 3).log.high_watermark > before


def test_kafka_17030_a_voter_that_does_not_know_of_its_removal_disturbs_nobody() -> None:
    """The leader tells it nothing any more, and it stood for election for ever: it has to ask who
    leads. As an observer it is no candidate either (KAFKA-17067)."""
    script = run(
        "cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20", "cut 1<>3", "cut 2<>3"
    )
    script.execute("remove-voter 3 via 1")
    script.execute("run 6000")
    epoch = raft(script, 1).epoch
    assert raft(script, 1).is_leader
    assert voter_ids(script, 3) == [1, 2, 3]
    script.execute("heal")
    script.execute("run 4000")
    assert raft(script, 1).is_leader
    assert raft(script, 1).epoch == raft(script, 3).epoch == epoch
    assert voter_ids(script, 3) == [1, 2]
    assert raft(script, 3).log.end_offset == raft(script, 1).log.end_offset
    script.execute("cut 1<>3")
    script.execute("cut 2<>3")
    script.execute("run 20000")
    assert raft(script, 3).epoch == epoch
    assert raft(script, 3).role.name.value in ("Unattached", "Follower")


def test_kafka_14238_what_no_snapshot_holds_is_not_deleted() -> None:
    """Segments went by age or size, and with them records that were in no snapshot yet."""
    script = run("cluster 1 2 3", "start", "run 1100", "append 1 a b c", "run 20")
    node = script.cluster.nodes[1]
    for snapshot in (OffsetAndEpoch(4, 1), OffsetAndEpoch(1 << 40, 1)):
        node.step(DeletePrefix(snapshot), script.cluster.now_ms)
        assert raft(script, 1).log.start_offset == 0
    script.execute("snapshot 1")
    script.execute("append 1 d")
    script.execute("prune 1")
    log = raft(script, 1).log
    assert log.start_offset == log.latest_snapshot.offset == 6
    script.execute("run 20")
    assert raft(script, 1).log.end_offset == 7


def test_kafka_20914_who_waits_for_a_leader_that_resigns_is_told() -> None:
    """Fetches stayed with it until their time was over, though it had nothing more to say."""
    script = run("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20")
    assert raft(script, 1).waiting_fetches
    script.execute("resign 1")
    assert not raft(script, 1).is_leader
    assert not raft(script, 1).waiting_fetches
    script.execute("run 5000")
    assert sum(raft(script, i).is_leader for i in (1, 2, 3)) == 1
