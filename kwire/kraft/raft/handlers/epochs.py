"""BeginQuorumEpoch and EndQuorumEpoch, versions 0-1 (KIP-595, KIP-853).

A new leader announces itself to the voters, and again to those that do not fetch; one that resigns
tells them in which order to stand for election. One that dies tells nobody, but its machine refuses
connections to it (`LeaderRefused`): its followers then stand in the order of their ids, each a
moment after the one before, so that they do not split the votes. A pre-vote comes first, which no
voter grants that still hears from the leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import common
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.state import LeaderEndpoint, RaftState
from kwire.kraft.raft.types import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    Endpoint,
    Endpoints,
    ReplicaKey,
)
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Request

EpochRequest: TypeAlias = "m.BeginQuorumEpochRequest | m.EndQuorumEpochRequest"
EpochPartition: TypeAlias = (
    "m.BeginQuorumEpochRequest.PartitionData | m.EndQuorumEpochRequest.PartitionData"
)


def _leader_endpoints(raft: RaftState, request: EpochRequest, leader_id: int) -> Endpoints:
    if request.leader_endpoints:
        return tuple(Endpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
    return raft.voters.voters.endpoints(leader_id)


def _refusal(raft: RaftState, partition: EpochPartition) -> ErrorCode:
    code = common.voter_only_error(raft, partition.leader_id, partition.leader_epoch)
    if code != ErrorCode.NONE:
        return code
    another = partition.leader_epoch == raft.epoch and raft.leader_id not in (
        None,
        partition.leader_id,
    )
    if another or partition.leader_id == raft.config.node_id:
        # Two leaders of one epoch, or somebody who takes us for the leader: a broken sender.
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _accept(raft: RaftState, request: EpochRequest, partition: EpochPartition, now_ms: int) -> None:
    endpoints = _leader_endpoints(raft, request, partition.leader_id)
    raft.follow_hint(partition.leader_epoch, partition.leader_id, endpoints, now_ms)


ResponseT = TypeVar("ResponseT", "m.BeginQuorumEpochResponse", "m.EndQuorumEpochResponse")


def handle_begin(
    raft: RaftState, message: msg.Request[m.BeginQuorumEpochRequest], now_ms: int
) -> None:
    request, response = message.request, m.BeginQuorumEpochResponse
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        error = response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        common.reply(raft, message, error)
        return
    partition = common.only_partition(request.topics)
    if partition is None:
        common.reply(raft, message, response(error_code=ErrorCode.INVALID_REQUEST))
        return
    code = _refusal(raft, partition)
    if code == ErrorCode.NONE:
        _accept(raft, request, partition, now_ms)
        if isinstance(raft.role, Follower):
            raft.heard_of_leader(raft.role, now_ms)
        directory_id = partition.voter_directory_id
        if not common.is_for_this_replica(raft, request.voter_id, directory_id):
            code = ErrorCode.INVALID_VOTER_KEY
    _reply(raft, message, response, code)


def handle_end(raft: RaftState, message: msg.Request[m.EndQuorumEpochRequest], now_ms: int) -> None:
    request, response = message.request, m.EndQuorumEpochResponse
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        error = response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        common.reply(raft, message, error)
        return
    partition = common.only_partition(request.topics)
    if partition is None:
        common.reply(raft, message, response(error_code=ErrorCode.INVALID_REQUEST))
        return
    code = _refusal(raft, partition)
    if code == ErrorCode.NONE:
        _accept(raft, request, partition, now_ms)
        role = raft.role
        if isinstance(role, Follower) and role.leader_id == partition.leader_id:
            raft.heard_of_leader(role, now_ms)
            role.fetch_by_ms = now_ms + _election_delay_ms(raft, partition)
            role.leader_is_gone = True
    _reply(raft, message, response, code)


def _reply(
    raft: RaftState,
    message: msg.Request[Request[ResponseT]],
    response: type[ResponseT],
    code: ErrorCode,
) -> None:
    """The answer about the metadata partition, with the leader and epoch of this replica."""
    answer = response.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=code,
        leader_id=common.leader_or_unknown(raft),
        leader_epoch=raft.epoch,
    )
    common.reply(
        raft,
        message,
        response(
            topics=[response.TopicData(topic_name=METADATA_TOPIC, partitions=[answer])],
            node_endpoints=common.node_endpoints(raft, message, response.NodeEndpoint)
            if message.version >= common.NODE_ENDPOINTS_VERSION
            else [],
        ),
    )


def _election_delay_ms(raft: RaftState, partition: m.EndQuorumEpochRequest.PartitionData) -> int:
    """How long to wait before standing: the first in the leader's list does at once, each later
    one twice as long as the one before it."""
    candidates: list[ReplicaKey] = [
        ReplicaKey.of(entry.candidate_id, entry.candidate_directory_id)
        for entry in partition.preferred_candidates
    ] or [ReplicaKey(candidate_id) for candidate_id in partition.preferred_successors]
    config = raft.config
    for position, candidate in enumerate(candidates):
        if candidate.id == config.node_id and candidate.directory_id in (
            None,
            config.directory_id,
        ):
            if position == 0:
                return 0
            base_ms = config.election_timeout_ms >> min(len(candidates) - 1, 30)
            return min(config.election_backoff_max_ms, base_ms << min(position - 1, 30))
    return raft.random_election_ms()


def handle_refused(raft: RaftState, message: msg.LeaderRefused, now_ms: int) -> None:
    """The leader's process is gone, so nobody has to wait for the fetch time-out."""
    role = raft.role
    if not isinstance(role, Follower) or not raft.is_voter or role.leader_is_gone:
        return
    heard = raft.leader_heard
    if heard is not None and heard[1] > message.since_ms:
        return
    if (role.leader_id, role.epoch) != (message.leader_id, message.epoch):
        return
    others = sorted(voter for voter in role.voter_ids if voter != role.leader_id)
    node_id = raft.config.node_id
    position = others.index(node_id) if node_id in others else len(others)
    role.leader_refuses = True
    role.fetch_by_ms = min(role.fetch_by_ms, now_ms + position * raft.config.stagger_ms)
    raft.elect_quickly(now_ms + raft.config.fetch_timeout_ms)


def send_begin(raft: RaftState, leader: Leader, now_ms: int) -> int:
    """Announce the epoch to the voters that do not fetch; when to try again."""
    request = m.BeginQuorumEpochRequest

    def build(voter: ReplicaKey) -> m.BeginQuorumEpochRequest:
        partition = request.PartitionData(
            partition_index=METADATA_PARTITION,
            voter_directory_id=voter.directory_or_zero,
            leader_id=raft.config.node_id,
            leader_epoch=leader.epoch,
        )
        return request(
            cluster_id=raft.config.cluster_id,
            voter_id=voter.id,
            topics=[request.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            leader_endpoints=[
                request.LeaderEndpoint(name=e.name, host=e.host, port=e.port)
                for e in raft.config.endpoints
            ],
        )

    silent = [replica.key.id for replica in leader.silent_voters(now_ms)]
    return raft.send_to_voters(silent, raft.voters.voters, build, now_ms)


def send_end(raft: RaftState, resigned: Resigned, now_ms: int) -> int:
    """Tell the voters that have not acknowledged it that the epoch is over."""
    request = m.EndQuorumEpochRequest

    def build(voter: ReplicaKey) -> m.EndQuorumEpochRequest:
        partition = request.PartitionData(
            partition_index=METADATA_PARTITION,
            leader_id=raft.config.node_id,
            leader_epoch=resigned.epoch,
            preferred_successors=[key.id for key in resigned.successors],
            preferred_candidates=[
                request.ReplicaInfo(
                    candidate_id=key.id, candidate_directory_id=key.directory_or_zero
                )
                for key in resigned.successors
            ],
        )
        return request(
            cluster_id=raft.config.cluster_id,
            topics=[request.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            leader_endpoints=[
                request.LeaderEndpoint(name=e.name, host=e.host, port=e.port)
                for e in raft.config.endpoints
            ],
        )

    return raft.send_to_voters(resigned.unacknowledged, raft.voters.voters, build, now_ms)


def handle_begin_response(
    raft: RaftState,
    node_id: int,
    sent: m.BeginQuorumEpochRequest,
    response: m.BeginQuorumEpochResponse,
    now_ms: int,
) -> bool:
    partition = common.only_partition(response.topics)
    if not common.top_level_ok(response.error_code) or partition is None:
        return False
    done = _handled(raft, partition, response.node_endpoints, now_ms)
    return done if done is not None else partition.error_code == ErrorCode.NONE


def handle_end_response(
    raft: RaftState,
    node_id: int,
    sent: m.EndQuorumEpochRequest,
    response: m.EndQuorumEpochResponse,
    now_ms: int,
) -> bool:
    partition = common.only_partition(response.topics)
    if not common.top_level_ok(response.error_code) or partition is None:
        return False
    done = _handled(raft, partition, response.node_endpoints, now_ms)
    if done is not None:
        return done
    if partition.error_code == ErrorCode.NONE and isinstance(raft.role, Resigned):
        raft.role.acknowledge(node_id)
    return partition.error_code == ErrorCode.NONE


def _handled(
    raft: RaftState,
    partition: m.BeginQuorumEpochResponse.PartitionData | m.EndQuorumEpochResponse.PartitionData,
    node_endpoints: Sequence[LeaderEndpoint],
    now_ms: int,
) -> bool | None:
    leader_id = common.optional_id(partition.leader_id)
    endpoints = raft.endpoints_from(leader_id, node_endpoints)
    error = partition.error_code
    return common.handled(raft, error, leader_id, partition.leader_epoch, endpoints, now_ms)
