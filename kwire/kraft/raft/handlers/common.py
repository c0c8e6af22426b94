"""Checks that all requests of the quorum share, and what every response may tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    UNKNOWN_ID,
    Endpoints,
    ReplicaKey,
    find_endpoint,
)
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message

NODE_ENDPOINTS_VERSION = 1
"""Responses about the quorum have NodeEndpoints from this version on (KIP-853)."""


def reply(raft: RaftState, request: msg.Request[Message], response: Message) -> None:
    raft.emit(fx.Reply(request.reply_to, response))


def has_valid_cluster_id(raft: RaftState, cluster_id: str | None) -> bool:
    return cluster_id is None or cluster_id == raft.config.cluster_id


class _Partition(Protocol):
    partition_index: int


P = TypeVar("P", bound=_Partition)
E_co = TypeVar("E_co", covariant=True)


class _Topic(Protocol, Generic[P]):
    topic_name: str
    partitions: list[P]


def only_partition(topics: Sequence[_Topic[P]]) -> P | None:
    """The partition of a message that must be about the metadata partition and nothing else."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != METADATA_PARTITION:
        return None
    return partitions[0]


def voter_only_error(raft: RaftState, node_id: int, epoch: int) -> ErrorCode:
    """Why a request that only voters send, in their epoch, is refused."""
    if epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def leader_only_error(raft: RaftState, epoch: int) -> ErrorCode:
    """Why a request that only the leader of an epoch answers is refused."""
    if epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > raft.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not raft.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if raft.shutting_down:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return ErrorCode.NONE


def is_for_this_replica(raft: RaftState, voter_id: int, directory_id: bytes | None) -> bool:
    """Whether the addressee named in a request, if any, is this very replica."""
    if voter_id < 0:
        return True
    key = ReplicaKey.of(voter_id, directory_id)
    return key.id == raft.config.node_id and key.directory_id in (None, raft.config.directory_id)


def leader_or_unknown(raft: RaftState) -> int:
    leader_id = raft.leader_id
    return UNKNOWN_ID if leader_id is None else leader_id


class _EndpointClass(Protocol[E_co]):
    def __call__(self, *, node_id: int, host: str, port: int) -> E_co: ...


def node_endpoints(
    raft: RaftState, request: msg.Request[Message], make: _EndpointClass[E_co]
) -> list[E_co]:
    """The leader's address for the listener the request came by, in the class of the response."""
    leader_id = raft.leader_id
    if leader_id is None:
        return []
    endpoint = find_endpoint(raft.role.leader_endpoints, request.listener)
    if endpoint is None:
        return []
    return [make(node_id=leader_id, host=endpoint.host, port=endpoint.port)]


def top_level_ok(code: int) -> bool:
    """Whether a response got past its top-level error; all of them are worth a retry."""
    return code == ErrorCode.NONE


def handled(
    raft: RaftState,
    error: int,
    leader_id: int | None,
    epoch: int,
    endpoints: Endpoints,
    now_ms: int,
) -> bool | None:
    """What every response may tell: a newer epoch, a leader.

    None: the handler of the API goes on. True: done with it. False: done, and back off.
    """
    if epoch < raft.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        # The other one is behind. Asking it again at once would be a busy loop.
        return error == ErrorCode.NONE
    if epoch > raft.epoch or error in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ):
        before = raft.role
        raft.follow_hint(epoch, leader_id, endpoints, now_ms)
        # Nothing new was learnt: asking the same node again at once would be a busy loop.
        return raft.role is not before
    if leader_id is not None and raft.leader_id is None and leader_id != raft.config.node_id:
        raft.follow_hint(epoch, leader_id, endpoints, now_ms)
        return None if error == ErrorCode.NONE else True
    if error in (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST):
        return False
    if error == ErrorCode.INVALID_VOTER_KEY:
        return False
    return None


def optional_id(node_id: int) -> int | None:
    return None if node_id < 0 else node_id
