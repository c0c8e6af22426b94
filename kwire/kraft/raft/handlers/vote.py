"""Vote, versions 0-2 (KIP-595, KIP-853, KIP-996).

A replica votes for at most one candidate an epoch, only for one whose log is at least as complete
as its own, and only after the vote is durable. A pre-vote (version 2) changes nothing at the voter
but its epoch; a leader, and a follower that has fetched from its leader, refuse it.
"""

from __future__ import annotations

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import common
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.nominee import Nominee, Prospective
from kwire.kraft.raft.roles.unattached import Unattached
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import METADATA_PARTITION, METADATA_TOPIC, OffsetAndEpoch, ReplicaKey
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


def handle(raft: RaftState, message: msg.Request[m.VoteRequest], now_ms: int) -> None:
    request = message.request
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        _fail(raft, message, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    partition = common.only_partition(request.topics)
    if partition is None:
        _fail(raft, message, ErrorCode.INVALID_REQUEST)
        return
    error, granted = _vote(raft, request, partition, now_ms)
    common.reply(raft, message, _response(raft, message, error, granted))


def _response(
    raft: RaftState, message: msg.Request[m.VoteRequest], error: ErrorCode, granted: bool
) -> m.VoteResponse:
    response = m.VoteResponse
    partition = response.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        leader_id=common.leader_or_unknown(raft),
        leader_epoch=raft.epoch,
        vote_granted=granted,
    )
    return response(
        topics=[response.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=common.node_endpoints(raft, message, response.NodeEndpoint)
        if message.version >= common.NODE_ENDPOINTS_VERSION
        else [],
    )


def _vote(
    raft: RaftState,
    request: m.VoteRequest,
    partition: m.VoteRequest.PartitionData,
    now_ms: int,
) -> tuple[ErrorCode, bool]:
    epoch, pre_vote = partition.replica_epoch, partition.pre_vote
    last = OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)
    if last.offset < 0 or last.epoch < 0 or epoch < 0:
        return ErrorCode.INVALID_REQUEST, False
    if last.epoch > epoch or (last.epoch == epoch and not pre_vote):
        return ErrorCode.INVALID_REQUEST, False
    error = common.voter_only_error(raft, partition.replica_id, epoch)
    if error:
        return error, False
    if epoch > raft.epoch:
        raft.become_unattached(epoch, None, now_ms)
    if not common.is_for_this_replica(raft, request.voter_id, partition.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    candidate = ReplicaKey.of(partition.replica_id, partition.replica_directory_id)
    granted = raft.role.can_grant_vote(candidate, last.is_up_to_date(raft.log.end), pre_vote)
    role = raft.role
    if granted and pre_vote and isinstance(role, Follower) and role.leader_refuses:
        # Not at the same time: the other one is about to win.
        role.fetch_by_ms = max(role.fetch_by_ms, now_ms + 2 * raft.config.stagger_ms)
    if granted and not pre_vote and role.voted is None:
        assert isinstance(role, Unattached | Prospective), role
        raft.add_vote(role, candidate)
    return ErrorCode.NONE, granted


def _fail(raft: RaftState, message: msg.Request[m.VoteRequest], error: ErrorCode) -> None:
    common.reply(raft, message, m.VoteResponse(error_code=error))


def send_requests(raft: RaftState, nominee: Nominee, pre_vote: bool, now_ms: int) -> int:
    """Ask every voter that has not answered yet; when to ask again."""
    end = raft.log.end
    request = m.VoteRequest

    def build(voter: ReplicaKey) -> m.VoteRequest:
        partition = request.PartitionData(
            partition_index=METADATA_PARTITION,
            replica_epoch=nominee.epoch,
            replica_id=raft.config.node_id,
            replica_directory_id=raft.config.directory_id,
            voter_directory_id=voter.directory_or_zero,
            last_offset_epoch=end.epoch,
            last_offset=end.offset,
            pre_vote=pre_vote,
        )
        return request(
            cluster_id=raft.config.cluster_id,
            voter_id=voter.id,
            topics=[request.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        )

    return raft.send_to_voters(nominee.tally.unrecorded(), raft.voters.voters, build, now_ms)


def handle_response(
    raft: RaftState, node_id: int, sent: m.VoteRequest, response: m.VoteResponse, now_ms: int
) -> bool:
    if not common.top_level_ok(response.error_code):
        return False
    partition = common.only_partition(response.topics)
    if partition is None:
        return False
    leader_id = common.optional_id(partition.leader_id)
    endpoints = raft.endpoints_from(leader_id, response.node_endpoints)
    done = common.handled(
        raft, partition.error_code, leader_id, partition.leader_epoch, endpoints, now_ms
    )
    if done is not None:
        return done
    if partition.error_code != ErrorCode.NONE:
        return False
    role = raft.role
    pre_vote = sent.topics[0].partitions[0].pre_vote
    # A late answer to a pre-vote must not count as a vote, nor the other way round.
    if isinstance(role, Nominee) and isinstance(role, Prospective) == pre_vote:
        role.tally.record(node_id, partition.vote_granted)
        if node_id == role.leader_id:
            raft.elect_as_usual()  # the leader answers: it was a false alarm
    return True


def handle_unsupported(raft: RaftState, sent: m.VoteRequest, now_ms: int) -> None:
    """A voter does not know pre-votes (before version 2): stand without them, as Kafka does."""
    if sent.topics[0].partitions[0].pre_vote and isinstance(raft.role, Prospective):
        raft.become_candidate(now_ms)
