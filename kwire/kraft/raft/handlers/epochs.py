"""BeginQuorumEpoch and EndQuorumEpoch, versions 0-1 (KIP-595, KIP-853).

A new leader announces itself to the voters, and again to those that do not fetch; one that resigns
tells them in which order to stand for election. One that dies tells nobody, but its machine refuses
connections to it (`LeaderRefused`): its followers then stand in the order of their ids, each a
moment after the one before, so that they do not split the votes. A pre-vote comes first, which no
voter grants that still hears from the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import common
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.roles.resigned import Resigned
from kwire.kraft.raft.types import Endpoint, Endpoints, ReplicaKey
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.kraft.raft.state import RaftState


def _leader_endpoints(raft: RaftState, request: Any, leader_id: int) -> Endpoints:
    if request.leader_endpoints:
        return tuple(Endpoint(e.name, e.host, e.port) for e in request.leader_endpoints)
    return raft.voters.voters.endpoints(leader_id)


def _accepted(raft: RaftState, message: msg.Request, response: Any, now_ms: int) -> Any | None:
    """The partition of a request that passes the common checks; else it is answered."""
    request = message.request
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        error = response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        common.reply(raft, message, error)
        return None
    partition = common.only_partition(request)
    if partition is None:
        common.reply(raft, message, response(error_code=ErrorCode.INVALID_REQUEST))
        return None
    code = common.voter_only_error(raft, partition.leader_id, partition.leader_epoch)
    another = partition.leader_epoch == raft.epoch and raft.leader_id not in (
        None,
        partition.leader_id,
    )
    if not code and (another or partition.leader_id == raft.config.node_id):
        # Two leaders of one epoch, or somebody who takes us for the leader: a broken sender.
        code = ErrorCode.INVALID_REQUEST
    if code:
        common.reply(raft, message, common.metadata_response(raft, message, response, code))
        return None
    endpoints = _leader_endpoints(raft, request, partition.leader_id)
    raft.follow_hint(partition.leader_epoch, partition.leader_id, endpoints, now_ms)
    return partition


def handle_begin(raft: RaftState, message: msg.Request, now_ms: int) -> None:
    partition = _accepted(raft, message, m.BeginQuorumEpochResponse, now_ms)
    if partition is None:
        return
    if isinstance(raft.role, Follower):
        raft.role.heard_of_leader(raft, now_ms)
    addressed = common.is_for_this_replica(
        raft, message.request.voter_id, partition.voter_directory_id
    )
    error = ErrorCode.NONE if addressed else ErrorCode.INVALID_VOTER_KEY
    response = m.BeginQuorumEpochResponse
    common.reply(raft, message, common.metadata_response(raft, message, response, error))


def handle_end(raft: RaftState, message: msg.Request, now_ms: int) -> None:
    partition = _accepted(raft, message, m.EndQuorumEpochResponse, now_ms)
    if partition is None:
        return
    role = raft.role
    if isinstance(role, Follower) and role.leader_id == partition.leader_id:
        role.heard_of_leader(raft, now_ms)
        role.fetch_by_ms = now_ms + _election_delay_ms(raft, partition)
        role.leader_is_gone = True
    response = common.metadata_response(raft, message, m.EndQuorumEpochResponse, ErrorCode.NONE)
    common.reply(raft, message, response)


def _election_delay_ms(raft: RaftState, partition: Any) -> int:
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
    raft.hurry = (role.epoch, now_ms + raft.config.fetch_timeout_ms)


def _own_endpoints(raft: RaftState, request: Any) -> list[Any]:
    return [
        request.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in raft.config.endpoints
    ]


def send_begin(raft: RaftState, leader: Leader, now_ms: int) -> int:
    """Announce the epoch to the voters that do not fetch; when to try again."""
    request = m.BeginQuorumEpochRequest

    def build(voter: ReplicaKey) -> Any:
        return request(
            cluster_id=raft.config.cluster_id,
            voter_id=voter.id,
            topics=common.metadata_topics(
                request,
                voter_directory_id=voter.directory_or_zero,
                leader_id=raft.config.node_id,
                leader_epoch=leader.epoch,
            ),
            leader_endpoints=_own_endpoints(raft, request),
        )

    silent = [replica.key.id for replica in leader.silent_voters(now_ms)]
    return raft.send_to_voters(silent, raft.voters.voters, build, now_ms)


def send_end(raft: RaftState, resigned: Resigned, now_ms: int) -> int:
    """Tell the voters that have not acknowledged it that the epoch is over."""
    request = m.EndQuorumEpochRequest

    def build(voter: ReplicaKey) -> Any:
        return request(
            cluster_id=raft.config.cluster_id,
            topics=common.metadata_topics(
                request,
                leader_id=raft.config.node_id,
                leader_epoch=resigned.epoch,
                preferred_successors=[key.id for key in resigned.successors],
                preferred_candidates=[
                    request.ReplicaInfo(
                        candidate_id=key.id, candidate_directory_id=key.directory_or_zero
                    )
                    for key in resigned.successors
                ],
            ),
            leader_endpoints=_own_endpoints(raft, request),
        )

    return raft.send_to_voters(resigned.unacknowledged, raft.voters.voters, build, now_ms)


def handle_begin_response(
    raft: RaftState, node_id: int, sent: Any, response: Any, now_ms: int
) -> bool:
    done, error = _common(raft, response, now_ms)
    return done if done is not None else error == ErrorCode.NONE


def handle_end_response(
    raft: RaftState, node_id: int, sent: Any, response: Any, now_ms: int
) -> bool:
    done, error = _common(raft, response, now_ms)
    if done is not None:
        return done
    if error == ErrorCode.NONE and isinstance(raft.role, Resigned):
        raft.role.acknowledge(node_id)
    return error == ErrorCode.NONE


def _common(raft: RaftState, response: Any, now_ms: int) -> tuple[bool | None, int]:
    partition = common.only_partition(response)
    if not common.top_level_ok(response.error_code) or partition is None:
        return False, ErrorCode.NONE
    leader_id = common.optional_id(partition.leader_id)
    endpoints = raft.endpoints_from(leader_id, response.node_endpoints)
    error = partition.error_code
    return (
        common.handled(raft, error, leader_id, partition.leader_epoch, endpoints, now_ms),
        error,
    )
