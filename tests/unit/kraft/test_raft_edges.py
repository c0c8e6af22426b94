"""Edges of the quorum that no history comes to often, each shown untested by a mutant."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.kraft.raft import RaftState, machine
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.handlers import append, changes, epochs, fetch, snapshot, vote
from kwire.kraft.raft.log_state import LogState
from kwire.kraft.raft.roles.follower import Follower, SnapshotFetch
from kwire.kraft.raft.roles.leader import PendingChange, Replica
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.roles.unattached import Unattached
from kwire.kraft.raft.types import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    OffsetAndEpoch,
    RaftInvariantError,
    ReplicaKey,
)
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.raft_cluster import (
    CLUSTER_ID,
    InFlight,
    RaftCluster,
    RaftNode,
    directory_of,
    endpoint_of,
    voter_node,
)


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

    def partition(asked: Any) -> Any:
        return fetch._asked_partition(request(topics=asked))

    assert partition(topics(0)) is not None
    assert partition(topics(1)) is None
    assert partition(topics()) is None
    assert partition(topics(0, 0)) is None
    assert partition(topics(0) * 2) is None


def test_half_of_a_snapshots_name_is_no_name() -> None:
    """What a leader answers is not believed: nothing is fetched."""
    response = m.FetchResponse
    for epoch, end_offset in ((-1, 5), (5, -1)):
        snapshot = response.SnapshotId(epoch=epoch, end_offset=end_offset)
        follower: Any = SimpleNamespace(fetching=None)
        raft: Any = SimpleNamespace(log=SimpleNamespace(snapshots={}))
        assert fetch._apply(raft, follower, response.PartitionData(snapshot_id=snapshot)) is False
        assert follower.fetching is None


# -- what only a leader of three shows


def three(**options: Any) -> RaftCluster:
    cluster = RaftCluster()
    for node_id in (1, 2, 3):
        cluster.add(node_id, voters=[1, 2, 3], **options)
    cluster.start()
    return cluster


def led(**options: Any) -> RaftCluster:
    cluster = three(**options)
    cluster.run(5000)
    assert len(cluster.leaders()) == 1
    return cluster


def deliver_until(cluster: RaftCluster, condition: Callable[[], bool]) -> None:
    """One message after the other."""
    while not condition():
        if cluster.network:
            cluster.deliver(cluster.network[0])
        else:
            assert cluster.tick()


def raft_of(node: RaftNode) -> RaftState:
    assert node.raft is not None
    return node.raft


def fetch_of(raft: RaftState, replica_id: int, offset: int, **fields: Any) -> Any:
    request = m.FetchRequest
    asked = {"high_watermark": (1 << 63) - 1, "partition_max_bytes": 100, **fields}
    return request(
        cluster_id=CLUSTER_ID,
        replica_state=request.ReplicaState(replica_id=replica_id),
        max_wait_ms=500,
        max_bytes=1000,
        topics=[
            request.FetchTopic(
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    request.FetchPartition(
                        current_leader_epoch=raft.epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=raft.epoch,
                        **asked,
                    )
                ],
            )
        ],
    )


def test_a_log_ahead_of_the_quorum_state_gives_the_epoch_and_no_vote() -> None:
    """As when the file of the vote was lost: nobody may vote twice in an epoch that it knows."""
    cluster = led()
    epoch = raft_of(cluster.leader()).epoch
    for node_id in (1, 2, 3):
        cluster.crash(node_id)
        cluster.nodes[node_id].disk.election = ElectionState(0, None, ReplicaKey(2))
    cluster.start()
    for node in cluster.nodes.values():
        role = raft_of(node).role
        assert isinstance(role, Unattached)
        assert (role.epoch, role.voter_ids, role.voted) == (epoch, (1, 2, 3), None)
    cluster.run(10_000)
    assert raft_of(cluster.leader()).epoch > epoch


def test_who_stood_for_election_and_is_no_voter_any_more_stands_no_more() -> None:
    cluster = three()
    observer = cluster.add(4, voters=[1, 2, 3])
    observer.disk.election = ElectionState(9, None, ReplicaKey(4, directory_of(4)))
    cluster.start(4)
    assert isinstance(raft_of(observer).role, Unattached)


def test_roles_change_within_an_epoch_only_as_the_table_says() -> None:
    raft = raft_of(led().leader())
    endpoints = (endpoint_of(2),)
    for epoch in (raft.epoch, raft.epoch - 1):
        with pytest.raises(RaftInvariantError):
            raft.become_follower(epoch, 2, endpoints, 0)
    assert raft.is_leader


def test_appends_continue_the_log_and_have_records() -> None:
    with pytest.raises(RaftInvariantError, match="append at 5, end 0"):
        LogState().append(5, 6, 1)
    leader = led().leader()
    with pytest.raises(RaftInvariantError, match="without records"):
        machine.step(raft_of(leader), msg.Append(b"", 0, raft_of(leader).epoch), 5000)


def test_a_leader_resigns_only_from_the_epoch_that_is_named() -> None:
    cluster = led()
    leader = cluster.leader()
    leader.step(msg.Resign(raft_of(leader).epoch - 1), cluster.now_ms)
    assert raft_of(leader).is_leader
    leader.step(msg.Resign(raft_of(leader).epoch), cluster.now_ms)
    assert isinstance(raft_of(leader).role, Resigned)


def test_fetches_wait_up_to_a_bound_and_until_they_are_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = led()
    leader = cluster.leader()
    raft = raft_of(leader)
    monkeypatch.setattr(fetch, "WAITING_FETCHES_MAX", len(raft.waiting_fetches) + 1)
    request = fetch_of(raft, 9, raft.log.end_offset)
    cluster.ask(leader.id, request, "waits")
    assert cluster.client_replies == []
    cluster.ask(leader.id, request, "one too many")
    [(name, response)] = cluster.client_replies
    assert (name, response.error_code) == ("one too many", ErrorCode.NONE)
    before = len(raft.waiting_fetches)
    leader.step(msg.Cancel(("client", "waits")), cluster.now_ms)
    assert len(raft.waiting_fetches) == before - 1
    leader.step(msg.Cancel(("client", "waits")), cluster.now_ms)
    cluster.run(5000)
    assert len(cluster.client_replies) == 1


def test_a_fetch_waits_while_nothing_of_the_epoch_is_committed() -> None:
    """The mark of a new leader is unknown: there is nothing to tell who knows none either."""
    cluster = three()
    deliver_until(cluster, lambda: bool(cluster.leaders()))
    leader = cluster.leader()
    raft = raft_of(leader)
    role = raft.leader()
    assert role is not None
    assert role.high_watermark is None
    cluster.ask(leader.id, fetch_of(raft, 9, raft.log.end_offset, high_watermark=-1))
    assert cluster.client_replies == []


def test_an_answer_has_no_more_bytes_than_either_bound_allows() -> None:
    cluster = led()
    leader = cluster.leader()
    raft = raft_of(leader)
    bounds: list[int] = []
    cluster.listeners.append(
        lambda node, effect: (
            bounds.append(effect.bytes_max) if isinstance(effect, fx.ReplyRecords) else None
        )
    )
    request = fetch_of(raft, 9, 0, partition_max_bytes=10)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    cluster.ask(leader.id, request)
    request.topics[0].partitions[0].partition_max_bytes = 2000
    cluster.ask(leader.id, request)
    assert bounds == [10, 1000]


def test_a_log_that_shares_nothing_with_the_leaders_is_cut_to_nothing() -> None:
    """A leader that dies before anybody has fetched: its epoch began at offset 0."""
    cluster = three()
    deliver_until(cluster, lambda: bool(cluster.leaders()))
    old = cluster.leader()
    assert raft_of(old).log.start_offset == 0
    cluster.crash(old.id)
    cluster.network.clear()
    cluster.run(10_000)
    leader = cluster.leader()
    leader.append(b"new", cluster.now_ms)
    cluster.run(2000)
    cluster.start(old.id)
    cluster.run(10_000)
    assert [batch.data for batch in old.disk.batches] == [b.data for b in leader.disk.batches]
    assert len({batch.epoch for batch in old.disk.batches}) == 1


def test_a_snapshot_that_is_behind_the_log_leaves_it_alone() -> None:
    """It was fetched while the log went on otherwise."""
    cluster = led()
    follower = next(node for node in cluster.running() if node is not cluster.leader())
    raft = raft_of(follower)
    end, level = raft.log.end_offset, raft.voters.level
    assert end > 1
    effects = machine.step(
        raft, msg.SnapshotStored(OffsetAndEpoch(1, raft.log.last_epoch), None, None), cluster.now_ms
    )
    assert (raft.log.start_offset, raft.log.end_offset, raft.voters.level) == (0, end, level)
    assert not any(isinstance(effect, fx.StartAt | fx.LoadSnapshot) for effect in effects)


def test_a_stored_snapshot_tells_voters_and_version_as_of_its_end() -> None:
    cluster = led()
    follower = next(node for node in cluster.running() if node is not cluster.leader())
    raft = raft_of(follower)
    voters = VoterSet(voter_node(node_id) for node_id in (1, 2, 3, 4))
    snapshot = OffsetAndEpoch(raft.log.end_offset + 50, raft.log.last_epoch)
    machine.step(raft, msg.SnapshotStored(snapshot, voters, 1), cluster.now_ms)
    assert raft.log.start_offset == raft.log.end_offset == snapshot.offset
    assert (raft.voters.level, raft.voters.voters) == (1, voters)
    assert raft.voters.voters_offset == snapshot.offset - 1
    raft.voters.truncate_to(snapshot.offset)
    assert (raft.voters.level, raft.voters.voters) == (1, voters)


def test_a_snapshot_that_is_not_there_is_not_found() -> None:
    cluster = led()
    leader = cluster.leader()
    raft = raft_of(leader)
    request = m.FetchSnapshotRequest
    for end_offset, epoch in ((1, raft.epoch), (0, 0)):
        partition = request.PartitionSnapshot(
            current_leader_epoch=raft.epoch,
            snapshot_id=request.SnapshotId(end_offset=end_offset, epoch=epoch),
        )
        topic = request.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
        cluster.ask(leader.id, request(cluster_id=CLUSTER_ID, replica_id=2, topics=[topic]))
    codes = [r.topics[0].partitions[0].error_code for _, r in cluster.client_replies]
    assert codes == [ErrorCode.SNAPSHOT_NOT_FOUND] * 2


def test_a_new_voter_whose_versions_cannot_be_had_is_refused_at_once() -> None:
    cluster = led()
    leader = cluster.leader()
    cluster.add(4, voters=[1, 2, 3])
    cluster.start(4)
    cluster.run(2000)
    request = m.AddRaftVoterRequest
    cluster.ask(
        leader.id,
        request(
            cluster_id=CLUSTER_ID,
            timeout_ms=30_000,
            voter_id=4,
            voter_directory_id=directory_of(4),
            listeners=[request.Listener(name="CONTROLLER", host="node4", port=9004)],
        ),
    )
    [asked] = [f for f in cluster.network if f.body.API_KEY == m.ApiVersionsRequest.API_KEY]
    cluster.network.remove(asked)
    cluster.fail(leader.id, asked.correlation, ErrorCode.NETWORK_EXCEPTION)
    cluster.collect()
    [(_, response)] = cluster.client_replies
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "API_VERSIONS returned an error NETWORK_EXCEPTION" in response.error_message
    changes.api_versions_failed(raft_of(leader), 4, 1, cluster.now_ms)  # nothing is pending


@pytest.mark.parametrize("fields", [{"voter_id": -1}, {"low": -1}, {"low": 2, "high": 1}])
def test_an_update_that_makes_no_sense_is_refused(fields: dict[str, int]) -> None:
    cluster = led()
    leader = cluster.leader()
    request = m.UpdateRaftVoterRequest
    voter_id = fields.get("voter_id", 2)
    low, high = fields.get("low", 0), fields.get("high", 1)
    cluster.ask(
        leader.id,
        request(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=raft_of(leader).epoch,
            voter_id=voter_id,
            voter_directory_id=directory_of(2),
            listeners=[request.Listener(name="CONTROLLER", host="node2", port=9002)],
            kraft_version_feature=request.KRaftVersionFeature(
                min_supported_version=low, max_supported_version=high
            ),
        ),
    )
    [(_, response)] = cluster.client_replies
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_successors_without_directories_stand_in_their_order() -> None:
    """EndQuorumEpoch 0 names ids only."""
    raft = raft_of(led().nodes[2])
    request = m.EndQuorumEpochRequest

    def delay_ms(*successors: int) -> int:
        return epochs._election_delay_ms(
            raft, request.PartitionData(preferred_successors=list(successors))
        )

    assert delay_ms(2, 3) == 0
    base_ms = raft.config.election_timeout_ms
    assert delay_ms(3, 2) == min(raft.config.election_backoff_max_ms, base_ms >> 1)
    assert delay_ms(3) >= base_ms, "who is not named waits as ever"


def test_only_a_vote_is_asked_again_in_an_older_version() -> None:
    """Without pre-votes there is a leader all the same; other requests are only put off."""
    cluster = three()
    for node_id in (1, 2, 3):
        cluster.versions[node_id] = {m.VoteRequest.API_KEY: 1}
    cluster.run(20_000)
    leader = cluster.leader()
    follower = next(node for node in cluster.running() if node is not leader)
    role = raft_of(follower).role

    def fetches() -> list[InFlight]:
        return [
            flight
            for flight in cluster.network
            if flight.source == follower.id and isinstance(flight.body, m.FetchRequest)
        ]

    deliver_until(cluster, lambda: bool(fetches()))
    cluster.fail(follower.id, fetches()[0].correlation, ErrorCode.UNSUPPORTED_VERSION)
    assert raft_of(follower).role is role


def test_the_quorum_is_described_by_the_wall_clock() -> None:
    """The leader itself is at its log's end now; the others were when they fetched."""
    cluster = led()
    leader = cluster.leader()
    role = raft_of(leader).leader()
    assert role is not None
    request = m.DescribeQuorumRequest
    topic = request.TopicData(
        topic_name=METADATA_TOPIC, partitions=[request.PartitionData(partition_index=0)]
    )
    wall_ms = 1_700_000_000_000
    leader.step(
        msg.Request(request(topics=[topic]), 2, ("client", "x"), wall_ms=wall_ms), cluster.now_ms
    )
    cluster.collect()
    [(_, response)] = cluster.client_replies
    for voter in response.topics[0].partitions[0].current_voters:
        known = role.voters[voter.replica_id]
        ago_ms = 0 if voter.replica_id == leader.id else cluster.now_ms - known.last_fetch_ms
        assert voter.last_fetch_timestamp == wall_ms - ago_ms
        assert (ago_ms > 0) == (voter.replica_id != leader.id)


def test_who_reaches_the_end_of_the_last_fetch_was_caught_up_then() -> None:
    """A replica that follows a busy leader closely is never at its end."""
    replica = Replica(ReplicaKey(4))
    replica.fetched(0, 10, now_ms=100)
    assert replica.last_caught_up_ms == -1
    replica.fetched(9, 20, now_ms=200)
    assert replica.last_caught_up_ms == -1
    replica.fetched(20, 30, now_ms=300)
    assert replica.last_caught_up_ms == 200
    replica.fetched(40, 40, now_ms=400)
    assert replica.last_caught_up_ms == 400


def test_a_static_voter_tells_a_leader_its_versions_once() -> None:
    cluster = three(static=True)
    told: list[int] = []
    cluster.listeners.append(
        lambda node, effect: (
            told.append(node.id)
            if isinstance(effect, fx.Send) and isinstance(effect.request, m.UpdateRaftVoterRequest)
            else None
        )
    )
    cluster.run(60_000)
    assert sorted(told) == [i for i in (1, 2, 3) if i != cluster.leader().id]


def test_an_answer_that_changes_nothing_puts_nobody_off() -> None:
    """A handler says False only of an answer that is no use; the sender then waits a moment."""
    cluster = led()
    leader = raft_of(cluster.leader())
    now_ms = cluster.now_ms
    assert changes.handle_api_versions_response(leader, 9, None, m.ApiVersionsResponse(), now_ms)
    raft = raft_of(next(node for node in cluster.running() if node.raft is not leader))
    follower = raft.role
    assert isinstance(follower, Follower)

    def snapshot_answer(code: ErrorCode) -> bool:
        shape = m.FetchSnapshotResponse
        partition = shape.PartitionSnapshot(
            error_code=int(code),
            current_leader=shape.LeaderIdAndEpoch(
                leader_id=leader.config.node_id, leader_epoch=raft.epoch
            ),
        )
        response = shape(topics=[shape.TopicSnapshot(partitions=[partition])])
        return snapshot.handle_response(raft, leader.config.node_id, None, response, now_ms)

    assert snapshot_answer(ErrorCode.NONE), "it fetches no snapshot any more"
    follower.fetching = SnapshotFetch(OffsetAndEpoch(100, 1))
    assert snapshot_answer(ErrorCode.SNAPSHOT_NOT_FOUND)
    assert follower.fetching is None, "the next fetch tells of the newest"
    shape = m.VoteResponse
    refused = shape.PartitionData(
        error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR), leader_id=-1, leader_epoch=raft.epoch
    )
    response = shape(topics=[shape.TopicData(topic_name=METADATA_TOPIC, partitions=[refused])])
    assert not vote.handle_response(raft, 3, None, response, now_ms), "else it is asked without end"


def test_a_new_voter_that_cannot_be_asked_yet_is_asked_when_it_can() -> None:
    node = VoterNode(ReplicaKey(4, directory_of(4)), (endpoint_of(4),), 0, 1)
    request: Any = SimpleNamespace()
    leader: Any = SimpleNamespace(
        pending_change=PendingChange(request, m.AddRaftVoterResponse, node, until_ms=9000)
    )
    raft: Any = SimpleNamespace(node_of=lambda *_: node, send=lambda *_: (False, 120))
    assert changes.poll(raft, leader, 100) == 120
    raft.send = lambda *_: (False, 10_000)
    assert changes.poll(raft, leader, 100) == 9000, "then it is given up"
