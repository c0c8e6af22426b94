"""Edges of the quorum that no history comes to often, each shown untested by a mutant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import append, fetch
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.types import METADATA_TOPIC_ID, ReplicaKey
from kwire.protocol import messages as m
from tests.support.raft_cluster import RaftCluster, directory_of


def test_a_leader_that_has_resigned_votes_for_nobody_in_its_epoch() -> None:
    """It has voted for itself there; a pre-vote promises nothing."""
    role = Resigned(4, (1, 2, 3), local_id=1, endpoints=(), successors=[], election_at_ms=0)
    candidate = ReplicaKey(2, directory_of(2))
    assert not role.can_grant_vote(candidate, up_to_date=True, pre_vote=False)
    assert role.can_grant_vote(candidate, up_to_date=True, pre_vote=True)
    assert not role.can_grant_vote(candidate, up_to_date=False, pre_vote=True)


def test_a_flush_that_began_before_a_truncation_says_nothing_about_what_came_instead() -> None:
    raft: Any = SimpleNamespace(flushing=(4, 9), log=SimpleNamespace(flushed_offset=3))
    append.forget_flush(raft)
    append.handle_flushed(raft, msg.Flushed(4))
    assert raft.log.flushed_offset == 3


def test_a_voter_does_not_count_itself_among_the_others() -> None:
    cluster = RaftCluster()
    for node_id in (1, 2, 3):
        cluster.add(node_id, voters=[1, 2, 3])
    cluster.start()
    for node in cluster.nodes.values():
        assert node.raft is not None
        others = sorted(other.id for other in node.raft.other_voters())
        assert others == [i for i in (1, 2, 3) if i != node.id]


def test_only_one_partition_of_one_topic_is_asked_for() -> None:
    request = m.FetchRequest

    def topics(*partitions: int) -> Any:
        asked = [request.FetchPartition(partition=index) for index in partitions]
        return [request.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=asked)]

    assert fetch._only_partition(topics(0), "partition") is not None
    assert fetch._only_partition(topics(1), "partition") is None
    assert fetch._only_partition(topics(), "partition") is None
    assert fetch._only_partition(topics(0, 0), "partition") is None
    assert fetch._only_partition(topics(0) * 2, "partition") is None


def test_half_of_a_snapshots_name_is_no_name() -> None:
    """What a leader answers is not believed: nothing is fetched."""
    response = m.FetchResponse
    for epoch, end_offset in ((-1, 5), (5, -1)):
        snapshot = response.SnapshotId(epoch=epoch, end_offset=end_offset)
        follower: Any = SimpleNamespace(fetching=None)
        raft: Any = SimpleNamespace(log=SimpleNamespace(snapshots={}))
        assert fetch._apply(raft, follower, response.PartitionData(snapshot_id=snapshot)) is False
        assert follower.fetching is None
