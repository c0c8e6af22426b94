"""FetchSnapshot, versions 0-1 (KIP-630, KIP-853), and snapshots of this replica's own.

A follower whose position the leader no longer has fetches the leader's newest snapshot piece by
piece; when the last one is durable, its log starts anew at the snapshot's end.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import append, common, fetch
from kwire.kraft.raft.roles.base import FOREVER_MS
from kwire.kraft.raft.roles.follower import Follower, SnapshotFetch
from kwire.kraft.raft.state import RaftState
from kwire.kraft.raft.types import (
    BOOTSTRAP_SNAPSHOT,
    METADATA_PARTITION,
    METADATA_TOPIC,
    OffsetAndEpoch,
    ReplicaKey,
)
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

SnapshotMessage: TypeAlias = "msg.Request[m.FetchSnapshotRequest]"


def handle(raft: RaftState, message: SnapshotMessage, now_ms: int) -> None:
    request = message.request
    response = m.FetchSnapshotResponse
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        error = response(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        common.reply(raft, message, error)
        return
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        common.reply(raft, message, response(error_code=ErrorCode.INVALID_REQUEST))
        return
    topic, partition = request.topics[0], request.topics[0].partitions[0]
    if topic.name != METADATA_TOPIC or partition.partition != METADATA_PARTITION:
        unknown = _response(raft, message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition)
        unknown.topics[0].name = topic.name
        common.reply(raft, message, unknown)
        return
    code = common.leader_only_error(raft, partition.current_leader_epoch)
    wanted = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if not code and (wanted not in raft.log.snapshots or wanted == BOOTSTRAP_SNAPSHOT):
        code = ErrorCode.SNAPSHOT_NOT_FOUND
    if not code and partition.position < 0:
        code = ErrorCode.POSITION_OUT_OF_RANGE
    if code:
        common.reply(raft, message, _response(raft, message, code, partition))
        return
    leader = raft.leader()
    assert leader is not None
    key = ReplicaKey.of(request.replica_id, partition.replica_directory_id)
    leader.voter_alive(key, now_ms)
    raft.emit(
        fx.ReplySnapshot(
            message.reply_to,
            _response(raft, message, ErrorCode.NONE, partition),
            wanted,
            partition.position,
            max(1, min(request.max_bytes, raft.config.fetch_snapshot_bytes_max)),
        )
    )


def _response(
    raft: RaftState,
    message: SnapshotMessage,
    code: ErrorCode,
    asked: m.FetchSnapshotRequest.PartitionSnapshot,
) -> m.FetchSnapshotResponse:
    response = m.FetchSnapshotResponse
    served = code == ErrorCode.NONE
    return response(
        error_code=ErrorCode.NONE,
        topics=[
            response.TopicSnapshot(
                name=METADATA_TOPIC,
                partitions=[
                    response.PartitionSnapshot(
                        index=asked.partition,
                        error_code=code,
                        snapshot_id=response.SnapshotId(
                            end_offset=asked.snapshot_id.end_offset if served else 0,
                            epoch=asked.snapshot_id.epoch if served else 0,
                        ),
                        current_leader=response.LeaderIdAndEpoch(
                            leader_id=common.leader_or_unknown(raft), leader_epoch=raft.epoch
                        ),
                        position=asked.position if served else 0,
                        unaligned_records=b"",
                    )
                ],
            )
        ],
        node_endpoints=common.node_endpoints(raft, message, response.NodeEndpoint)
        if message.version >= 1
        else [],
    )


# ---- the follower's side


def send_fetch(raft: RaftState, follower: Follower, now_ms: int) -> int:
    """Ask the leader for the next piece; when to look again."""
    fetching = follower.fetching
    assert fetching is not None
    if fetching.freezing:
        return FOREVER_MS
    node = raft.node_of(follower.leader_id, follower.leader_endpoints)
    if node is None:
        return fetch.send_to_bootstrap(raft, now_ms)
    if raft.requests.has_timed_out(node, now_ms):
        raft.requests.reset(node.id)
        return fetch.send_to_bootstrap(raft, now_ms)
    return raft.send(node, lambda: _build_request(raft, fetching), now_ms)[1]


def _build_request(raft: RaftState, fetching: SnapshotFetch) -> m.FetchSnapshotRequest:
    request = m.FetchSnapshotRequest
    return request(
        cluster_id=raft.config.cluster_id,
        replica_id=raft.config.node_id,
        max_bytes=raft.config.fetch_snapshot_bytes_max,
        topics=[
            request.TopicSnapshot(
                name=METADATA_TOPIC,
                partitions=[
                    request.PartitionSnapshot(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=raft.epoch,
                        snapshot_id=request.SnapshotId(
                            end_offset=fetching.snapshot.offset, epoch=fetching.snapshot.epoch
                        ),
                        position=fetching.position,
                        replica_directory_id=raft.config.directory_id,
                    )
                ],
            )
        ],
    )


def handle_response(
    raft: RaftState,
    node_id: int,
    sent: m.FetchSnapshotRequest,
    response: m.FetchSnapshotResponse,
    now_ms: int,
) -> bool:
    if not common.top_level_ok(response.error_code):
        # Apache Kafka 4.4 answers like this when it has deleted the snapshot: ask for the newest.
        if isinstance(raft.role, Follower):
            raft.role.fetching = None
        return False
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    partition = response.topics[0].partitions[0]
    current = partition.current_leader
    leader_id = common.optional_id(current.leader_id)
    endpoints = raft.endpoints_from(leader_id, response.node_endpoints)
    done = common.handled(
        raft, partition.error_code, leader_id, current.leader_epoch, endpoints, now_ms
    )
    if done is not None:
        return done
    follower = raft.role
    if not isinstance(follower, Follower) or follower.fetching is None:
        return True
    if partition.error_code in (
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
    ):
        # The leader has deleted it meanwhile: fetch again and be told of the newest one.
        follower.fetching = None
        raft.heard_of_leader(follower, now_ms)
        return True
    if partition.error_code != ErrorCode.NONE or node_id != follower.leader_id:
        return False
    return _write_piece(raft, follower, partition, now_ms)


def _write_piece(
    raft: RaftState,
    follower: Follower,
    partition: m.FetchSnapshotResponse.PartitionSnapshot,
    now_ms: int,
) -> bool:
    fetching = follower.fetching
    assert fetching is not None
    records = partition.unaligned_records
    assert not isinstance(records, list), "what was decoded is one buffer"
    piece = bytes(records)
    got = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    end = fetching.position + len(piece)
    if (
        got != fetching.snapshot
        or fetching.freezing
        or partition.position != fetching.position
        or not piece
        or end > partition.size
    ):
        return False
    raft.emit(fx.WriteSnapshot(fetching.snapshot, fetching.position, piece))
    fetching.position = end
    if end == partition.size:
        fetching.freezing = True
        raft.emit(fx.FreezeSnapshot(fetching.snapshot))
    raft.heard_of_leader(follower, now_ms)
    return True


def handle_stored(raft: RaftState, message: msg.SnapshotStored, now_ms: int) -> None:
    """A fetched snapshot is durable: the log starts anew behind it, if it is ahead of the log."""
    snapshot = message.snapshot
    role = raft.role
    if isinstance(role, Follower) and role.fetching and role.fetching.snapshot == snapshot:
        role.fetching = None
    raft.log.add_snapshot(snapshot)
    end = raft.log.end
    ahead = snapshot.epoch > end.epoch or (
        snapshot.epoch == end.epoch and snapshot.offset > end.offset
    )
    if not ahead or raft.is_leader:
        return
    append.forget_flush(raft)
    raft.log.start_at(snapshot)
    raft.voters.clear()
    if message.kraft_version is not None:
        raft.voters.add_level(snapshot.offset - 1, message.kraft_version)
    if message.voters is not None:
        raft.voters.add_voters(snapshot.offset - 1, message.voters)
    raft.voters_changed()
    raft.emit(fx.StartAt(snapshot))
    raft.emit(fx.LoadSnapshot(snapshot))


def handle_created(raft: RaftState, message: msg.SnapshotCreated) -> None:
    raft.log.add_snapshot(message.snapshot)


def handle_delete_prefix(raft: RaftState, message: msg.DeletePrefix) -> None:
    """Retention: everything before a stored snapshot goes, if the snapshot is committed."""
    snapshot = message.snapshot
    if snapshot not in raft.log.snapshots or snapshot.offset > raft.log.high_watermark:
        return
    gone = raft.log.delete_before(snapshot)
    raft.voters.truncate_before(snapshot.offset)
    raft.emit(fx.DeleteBefore(snapshot, tuple(gone)))
