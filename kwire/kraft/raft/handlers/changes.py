"""AddRaftVoter 0-1, RemoveRaftVoter 0, UpdateRaftVoter 0 (KIP-853), one change at a time.

A change is a VotersRecord that differs from the one before it by one voter; the leader writes it
only when its own epoch has a committed record and the last change is committed, so that any two
majorities overlap. The new set counts from the append on. A new voter must support the finalized
kraft.version (asked by ApiVersions) and have caught up with the log. A leader that removed itself
leads until that is committed and then resigns.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.config import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN
from kwire.kraft.raft.control_records import ControlType
from kwire.kraft.raft.handlers import append, common
from kwire.kraft.raft.roles.base import FOREVER_MS
from kwire.kraft.raft.roles.follower import Follower
from kwire.kraft.raft.roles.leader import Leader, PendingChange
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import Endpoint, Endpoints, ReplicaKey, find_endpoint
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode

ADD_TIMEOUT_MS_MAX = 3_600_000
KRAFT_VERSION_FEATURE = "kraft.version"
METADATA_VERSION_FEATURE = "metadata.version"


VoterRequest: TypeAlias = (
    "m.AddRaftVoterRequest | m.RemoveRaftVoterRequest | m.UpdateRaftVoterRequest"
)
ChangeMessage: TypeAlias = "msg.Request[m.AddRaftVoterRequest | m.RemoveRaftVoterRequest]"
ChangeResponseClass: TypeAlias = "type[m.AddRaftVoterResponse] | type[m.RemoveRaftVoterResponse]"


def _key(request: VoterRequest) -> ReplicaKey:
    return ReplicaKey.of(request.voter_id, request.voter_directory_id)


def _endpoints(request: m.AddRaftVoterRequest | m.UpdateRaftVoterRequest) -> Endpoints:
    return tuple(Endpoint(entry.name, entry.host, entry.port) for entry in request.listeners)


def _answer(
    raft: RaftState,
    message: ChangeMessage,
    response_class: ChangeResponseClass,
    code: ErrorCode,
    text: str | None = None,
) -> None:
    common.reply(raft, message, response_class(error_code=code, error_message=text))


def _refuse_cluster(
    raft: RaftState, message: ChangeMessage, response_class: ChangeResponseClass
) -> None:
    text = (
        f'The given id "{message.request.cluster_id}" doesn\'t match the cluster id '
        f'"{raft.config.cluster_id}"'
    )
    _answer(raft, message, response_class, ErrorCode.INCONSISTENT_CLUSTER_ID, text)


def _change_refusal(
    raft: RaftState, leader: Leader | None, verb: str
) -> tuple[ErrorCode, str | None]:
    """Why no voter can be added or removed now."""
    if leader is None or raft.shutting_down:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, ""
    if leader.pending_change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to handle previous voter change request"
        )
    if leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        )
    if raft.voters.level < 1:
        return ErrorCode.UNSUPPORTED_VERSION, (
            f"Cluster doesn't support {verb} voter because the kraft.version feature is "
            f"{raft.voters.level}"
        )
    offset = raft.voters.voters_offset
    if offset is not None and offset >= leader.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, (
            f"Request timed out waiting for voters to commit the latest voter change at {offset} "
            f"with HWM {leader.high_watermark}"
        )
    return ErrorCode.NONE, None


# ---- the leader's side


def handle_add(raft: RaftState, message: msg.Request[m.AddRaftVoterRequest], now_ms: int) -> None:
    request, response = message.request, m.AddRaftVoterResponse
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        _refuse_cluster(raft, message, response)
        return
    key, endpoints = _key(request), _endpoints(request)
    if not raft.is_leader or raft.shutting_down:
        _answer(raft, message, response, ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
        return
    if key.id < 0 or key.directory_id is None:
        text = "Add voter request didn't include a valid voter"
        _answer(raft, message, response, ErrorCode.INVALID_REQUEST, text)
        return
    node = raft.node_of(key.id, endpoints)
    if node is None:
        text = (
            f"Add voter request didn't include the endpoint ({endpoints}) for the default "
            f"listener {raft.config.listener_name}"
        )
        _answer(raft, message, response, ErrorCode.INVALID_REQUEST, text)
        return
    leader = raft.leader()
    code, reason = _change_refusal(raft, leader, "adding")
    if code == ErrorCode.NONE and raft.voters.voters.get(key.id) is not None:
        code = ErrorCode.DUPLICATE_VOTER
        reason = (
            f"The voter id for {_name(key)} is already part of the set of voters "
            f"[{', '.join(_name(voter) for voter in raft.voters.voters.keys)}]."
        )
    if code != ErrorCode.NONE:
        _answer(raft, message, response, code, reason)
        return
    assert leader is not None
    timeout_ms = max(0, min(request.timeout_ms, ADD_TIMEOUT_MS_MAX))
    leader.pending_change = PendingChange(
        message,
        response,
        VoterNode(key, endpoints),
        until_ms=now_ms + timeout_ms,
        ack_when_committed=request.ack_when_committed,
    )


def _name(key: ReplicaKey) -> str:
    directory = "<undefined>" if key.directory_id is None else uuids.to_text(key.directory_id)
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def _code_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def poll(raft: RaftState, leader: Leader, now_ms: int) -> int:
    """Go on with the pending change: ask the new voter for its versions, or give up in time."""
    pending = leader.pending_change
    if pending is None:
        return FOREVER_MS
    if now_ms >= pending.until_ms:
        raft.finish_change(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            "Request timed out before the voter change was committed",
        )
        return FOREVER_MS
    if pending.asked:
        return pending.until_ms
    node = raft.node_of(pending.node.key.id, pending.node.endpoints)
    assert node is not None
    request = m.ApiVersionsRequest
    sent, retry_at_ms = raft.send(
        node,
        lambda: request(client_software_name="kwire", client_software_version="0"),
        now_ms,
    )
    pending.asked = sent
    return pending.until_ms if sent else min(pending.until_ms, retry_at_ms)


def handle_api_versions_response(
    raft: RaftState,
    node_id: int,
    sent: m.ApiVersionsRequest,
    response: m.ApiVersionsResponse,
    now_ms: int,
) -> bool:
    leader = raft.leader()
    pending = leader.pending_change if leader is not None else None
    if leader is None or pending is None or pending.node.key.id != node_id:
        return True
    if pending.end_offset is not None:
        return True
    key = pending.node.key
    if response.error_code != ErrorCode.NONE:
        raft.finish_change(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error "
            f"{_code_name(response.error_code)}",
        )
        return False
    low, high = _kraft_versions(response)
    if not low <= raft.voters.level <= high:
        raft.finish_change(
            leader,
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {_name(key)} since kraft.version range {low}-{high} "
            f"doesn't support the finalized version {raft.voters.level}",
        )
        return True
    if not leader.caught_up(key, now_ms):
        raft.finish_change(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Aborted add voter operation for {_name(key)} since it is lagging behind",
        )
        return True
    voters = raft.voters.voters.with_added(VoterNode(key, pending.node.endpoints, low, high))
    assert voters is not None, f"{key} became a voter meanwhile"
    _append_voters(raft, leader, pending, voters)
    return True


def _kraft_versions(response: m.ApiVersionsResponse) -> tuple[int, int]:
    for feature in response.supported_features:
        if feature.name == KRAFT_VERSION_FEATURE:
            return feature.min_version, feature.max_version
    return 0, 0


def _append_voters(
    raft: RaftState, leader: Leader, pending: PendingChange, voters: VoterSet
) -> None:
    last = append.append_control(raft, leader, [(ControlType.VOTERS, voters.to_record())])
    pending.asked = True
    pending.end_offset = last + 1
    if not pending.ack_when_committed:
        pending.answered = True
        _answer(raft, pending.request, pending.response_class, ErrorCode.NONE)


def api_versions_failed(raft: RaftState, node_id: int, code: int, now_ms: int) -> None:
    leader = raft.leader()
    pending = leader.pending_change if leader is not None else None
    if leader is None or pending is None or pending.node.key.id != node_id:
        return
    if pending.end_offset is None:
        raft.finish_change(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error "
            f"{_code_name(code)}",
        )


def handle_remove(
    raft: RaftState, message: msg.Request[m.RemoveRaftVoterRequest], now_ms: int
) -> None:
    request, response = message.request, m.RemoveRaftVoterResponse
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        _refuse_cluster(raft, message, response)
        return
    key = _key(request)
    leader = raft.leader()
    if leader is not None and (key.id < 0 or key.directory_id is None):
        text = "Remove voter request didn't include a valid voter"
        _answer(raft, message, response, ErrorCode.INVALID_REQUEST, text)
        return
    code, reason = _change_refusal(raft, leader, "removing")
    voters = raft.voters.voters.with_removed(key)
    if code == ErrorCode.NONE and voters is None:
        code = ErrorCode.VOTER_NOT_FOUND
        reason = (
            f"Cannot remove voter {_name(key)} from the set of voters "
            f"[{', '.join(_name(voter) for voter in raft.voters.voters.keys)}]"
        )
    if code != ErrorCode.NONE:
        _answer(raft, message, response, code, reason)
        return
    assert leader is not None
    assert voters is not None
    pending = PendingChange(
        message,
        response,
        VoterNode(key, ()),
        until_ms=now_ms + raft.config.request_timeout_ms,
        asked=True,
    )
    leader.pending_change = pending
    _append_voters(raft, leader, pending, voters)


def handle_update(
    raft: RaftState, message: msg.Request[m.UpdateRaftVoterRequest], now_ms: int
) -> None:
    request = message.request
    response = m.UpdateRaftVoterResponse
    code = common.leader_only_error(raft, request.current_leader_epoch)
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        code = ErrorCode.INCONSISTENT_CLUSTER_ID
    key, endpoints = _key(request), _endpoints(request)
    feature = request.kraft_version_feature
    low, high = feature.min_supported_version, feature.max_supported_version
    if not code and (key.id < 0 or key.directory_id is None or low < 0 or high < low):
        code = ErrorCode.INVALID_REQUEST
    if not code and raft.node_of(key.id, endpoints) is None:
        code = ErrorCode.INVALID_REQUEST
    if not code:
        code = _update(raft, VoterNode(key, endpoints, low, high))
    leader_id = raft.leader_id
    current = response.CurrentLeader(
        leader_id=common.leader_or_unknown(raft), leader_epoch=raft.epoch
    )
    endpoint = find_endpoint(raft.role.leader_endpoints, message.listener)
    if leader_id is not None and endpoint is not None:
        current.host, current.port = endpoint.host, endpoint.port
    common.reply(raft, message, response(error_code=code, current_leader=current))


def _update(raft: RaftState, node: VoterNode) -> ErrorCode:
    """Replace a voter's listeners and versions; the error code for the voter."""
    leader = raft.leader()
    assert leader is not None
    if leader.pending_change is not None or leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT
    if raft.voters.level == 0:
        known = leader.upgrade_voters or raft.voters.voters
        replaced = known.with_replaced(node)
        if replaced is None:
            return ErrorCode.VOTER_NOT_FOUND
        leader.upgrade_voters = replaced
        return ErrorCode.NONE
    offset = raft.voters.voters_offset
    if offset is not None and offset >= leader.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT
    if not node.supports(raft.voters.level):
        return ErrorCode.INVALID_REQUEST
    updated = raft.voters.voters.with_updated(node)
    if updated is None:
        return ErrorCode.VOTER_NOT_FOUND
    if updated != raft.voters.voters:
        append.append_control(raft, leader, [(ControlType.VOTERS, updated.to_record())])
    return ErrorCode.NONE


# ---- the follower's side


def send_update_voter(raft: RaftState, follower: Follower, now_ms: int) -> bool:
    request = m.UpdateRaftVoterRequest

    def build() -> m.UpdateRaftVoterRequest:
        return request(
            cluster_id=raft.config.cluster_id,
            current_leader_epoch=raft.epoch,
            voter_id=raft.config.node_id,
            voter_directory_id=raft.config.directory_id,
            listeners=[
                request.Listener(name=e.name, host=e.host, port=e.port)
                for e in raft.config.endpoints
            ],
            kraft_version_feature=request.KRaftVersionFeature(
                min_supported_version=KRAFT_VERSION_MIN, max_supported_version=KRAFT_VERSION_MAX
            ),
        )

    node = raft.node_of(follower.leader_id, follower.leader_endpoints)
    return node is not None and raft.send(node, build, now_ms)[0]


def handle_update_response(
    raft: RaftState,
    node_id: int,
    sent: m.UpdateRaftVoterRequest,
    response: m.UpdateRaftVoterResponse,
    now_ms: int,
) -> bool:
    current = response.current_leader
    leader_id = common.optional_id(current.leader_id)
    endpoints: Endpoints = raft.voters.voters.endpoints(leader_id) if leader_id is not None else ()
    if leader_id is not None and current.port > 0 and current.host:
        endpoints = (Endpoint(raft.config.listener_name, current.host, current.port),)
    if leader_id is not None:
        done = common.handled(
            raft, response.error_code, leader_id, current.leader_epoch, endpoints, now_ms
        )
        if done is not None:
            return done
    if isinstance(raft.role, Follower):
        raft.role.has_updated_leader = response.error_code == ErrorCode.NONE
    return response.error_code == ErrorCode.NONE


def send_join(raft: RaftState, follower: Follower, now_ms: int) -> bool:
    """AddRaftVoter for this replica, or first RemoveRaftVoter for what had its node id."""
    node = raft.node_of(follower.leader_id, follower.leader_endpoints)
    if node is None:
        return False
    config = raft.config
    former = raft.voters.voters.get(config.node_id)

    def build() -> m.RemoveRaftVoterRequest | m.AddRaftVoterRequest:
        if former is not None:
            return m.RemoveRaftVoterRequest(
                cluster_id=config.cluster_id,
                voter_id=former.key.id,
                voter_directory_id=former.key.directory_or_zero,
            )
        return m.AddRaftVoterRequest(
            cluster_id=config.cluster_id,
            timeout_ms=config.request_timeout_ms,
            voter_id=config.node_id,
            voter_directory_id=config.directory_id,
            listeners=[
                m.AddRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port)
                for e in config.endpoints
            ],
            ack_when_committed=False,
        )

    return raft.send(node, build, now_ms)[0]


def handle_join_response(
    raft: RaftState,
    node_id: int,
    sent: m.AddRaftVoterRequest | m.RemoveRaftVoterRequest,
    response: m.AddRaftVoterResponse | m.RemoveRaftVoterResponse,
    now_ms: int,
) -> bool:
    """Whatever the leader says: the VotersRecord in the log decides, and the next period asks."""
    return response.error_code == ErrorCode.NONE
