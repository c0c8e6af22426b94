"""Fetch on the metadata partition, versions 13-18 (KIP-595, KIP-630, KIP-853, KIP-1166).

A replica's fetch position acknowledges everything before it. The leader answers with records, with
the point up to which the logs can agree at most (the follower truncates and asks again), or with a
snapshot to load. With nothing to send it waits up to MaxWaitMs for a record or, from version 18
on, for a high watermark above the one in the request. Versions that name the topic and not its id
are refused, as by Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar

from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.control_records import batch_shapes
from kwire.kraft.raft.handlers import append, common
from kwire.kraft.raft.log_state import Position, Validated
from kwire.kraft.raft.roles.base import FOREVER_MS
from kwire.kraft.raft.roles.follower import Follower, SnapshotFetch
from kwire.kraft.raft.state import RaftState, WaitingFetch
from kwire.kraft.raft.types import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyTo,
    check,
)
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

WAITING_FETCHES_MAX = 10_000
KRAFT_NODE_ENDPOINTS_VERSION = 17

P_co = TypeVar("P_co", covariant=True)


FetchMessage: TypeAlias = "msg.Request[m.FetchRequest]"


def handle(raft: RaftState, message: FetchMessage, now_ms: int) -> None:
    request = message.request
    if not common.has_valid_cluster_id(raft, request.cluster_id):
        _fail(raft, message, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    partition = _asked_partition(request)
    if partition is None:
        _fail(raft, message, ErrorCode.INVALID_REQUEST)
        return
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        response = _response(raft, message, ErrorCode.INVALID_REQUEST, None)
        common.reply(raft, message, response)
        return
    if len(raft.waiting_fetches) >= WAITING_FETCHES_MAX:
        _answer(raft, message, partition, now_ms, until_ms=now_ms)
        return
    _answer(raft, message, partition, now_ms, until_ms=now_ms + request.max_wait_ms)


def _fail(raft: RaftState, message: FetchMessage, error: ErrorCode) -> None:
    common.reply(raft, message, m.FetchResponse(error_code=error))


class _Topic(Protocol[P_co]):
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[P_co]: ...


def _only_partition(topics: Sequence[_Topic[P_co]]) -> P_co | None:
    """The only partition of what should be about the metadata topic alone."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    return topics[0].partitions[0] if topics[0].topic_id == METADATA_TOPIC_ID else None


def _asked_partition(request: m.FetchRequest) -> m.FetchRequest.FetchPartition | None:
    """The only partition of a request, if it is the metadata partition."""
    partition = _only_partition(request.topics)
    if partition is None or partition.partition != METADATA_PARTITION:
        return None
    return partition


def _answered_partition(response: m.FetchResponse) -> m.FetchResponse.PartitionData | None:
    """The only partition of a response, if it is the metadata partition."""
    partition = _only_partition(response.responses)
    if partition is None or partition.partition_index != METADATA_PARTITION:
        return None
    return partition


def _answer(
    raft: RaftState,
    message: FetchMessage,
    partition: m.FetchRequest.FetchPartition,
    now_ms: int,
    until_ms: int,
) -> None:
    """Answer a Fetch now or let it wait until `until_ms`."""
    error = common.leader_only_error(raft, partition.current_leader_epoch)
    if error:
        common.reply(raft, message, _response(raft, message, error, None))
        return
    leader = raft.leader()
    assert leader is not None
    offset = partition.fetch_offset
    validated = raft.log.validate(offset, partition.last_fetched_epoch)
    if validated.position is not Position.VALID:
        common.reply(raft, message, _response(raft, message, ErrorCode.NONE, validated))
        return
    key = _replica_key(message.request, partition)
    if key.id != raft.config.node_id and leader.replica_fetched(
        key, offset, raft.log.end_offset, now_ms
    ):
        append.leader_committed(raft, leader)
    has_records = offset < raft.log.end_offset
    high_watermark = -1 if leader.high_watermark is None else leader.high_watermark
    if has_records:
        raft.emit(
            fx.ReplyRecords(
                message.reply_to,
                _response(raft, message, ErrorCode.NONE, None),
                offset,
                max(1, min(partition.partition_max_bytes, message.request.max_bytes)),
            )
        )
    elif high_watermark > partition.high_watermark or now_ms >= until_ms:
        common.reply(raft, message, _response(raft, message, ErrorCode.NONE, None))
    else:
        raft.waiting_fetches[message.reply_to] = WaitingFetch(message, partition, until_ms)


def _replica_key(request: m.FetchRequest, partition: m.FetchRequest.FetchPartition) -> ReplicaKey:
    replica_id = request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id
    return ReplicaKey.of(replica_id, partition.replica_directory_id)


def _response(
    raft: RaftState, message: FetchMessage, error: ErrorCode, validated: Validated | None
) -> m.FetchResponse:
    response = m.FetchResponse
    leader = raft.leader()
    partition = response.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        log_start_offset=raft.log.start_offset,
        high_watermark=-1
        if leader is None or leader.high_watermark is None or error != ErrorCode.NONE
        else leader.high_watermark,
        current_leader=response.LeaderIdAndEpoch(
            leader_id=common.leader_or_unknown(raft), leader_epoch=raft.epoch
        ),
        records=b"",
    )
    if validated is not None and validated.position is Position.DIVERGING:
        partition.diverging_epoch = response.EpochEndOffset(
            epoch=validated.at.epoch, end_offset=validated.at.offset
        )
    elif validated is not None:
        partition.snapshot_id = response.SnapshotId(
            end_offset=validated.at.offset, epoch=validated.at.epoch
        )
    endpoints: list[m.FetchResponse.NodeEndpoint] = []
    if message.version >= KRAFT_NODE_ENDPOINTS_VERSION:
        endpoints = common.node_endpoints(raft, message, response.NodeEndpoint)
    return response(
        responses=[
            response.FetchableTopicResponse(
                topic_id=METADATA_TOPIC_ID,
                partitions=[partition],
            )
        ],
        node_endpoints=endpoints,
    )


# ---- fetches that wait


def poll_waiting(raft: RaftState, now_ms: int) -> int:
    """Answer the fetches that can be answered now (`wake_fetches` has each of them tried again);
    when the time of the next one is over."""
    waiting = raft.waiting_fetches
    if not waiting:
        raft.wake_fetches = False
        return FOREVER_MS
    while raft.wake_fetches:
        raft.wake_fetches = False
        for reply_to, entry in list(waiting.items()):
            del waiting[reply_to]
            _answer(raft, entry.message, entry.partition, now_ms, entry.until_ms)
    deadline_ms = FOREVER_MS
    for reply_to, entry in list(waiting.items()):
        if entry.until_ms <= now_ms:
            del waiting[reply_to]
            _answer(raft, entry.message, entry.partition, now_ms, entry.until_ms)
        else:
            deadline_ms = min(deadline_ms, entry.until_ms)
    return deadline_ms


def cancel(raft: RaftState, reply_to: ReplyTo) -> None:
    raft.waiting_fetches.pop(reply_to, None)


# ---- the follower's side


def build_request(raft: RaftState) -> m.FetchRequest:
    """A Fetch from the end of this replica's log."""
    request = m.FetchRequest
    config, log = raft.config, raft.log
    return request(
        cluster_id=config.cluster_id,
        replica_state=request.ReplicaState(replica_id=config.node_id),
        max_wait_ms=config.fetch_wait_max_ms,
        max_bytes=config.fetch_bytes_max,
        topics=[
            request.FetchTopic(
                topic=METADATA_TOPIC,
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    request.FetchPartition(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=raft.epoch,
                        fetch_offset=log.end_offset,
                        last_fetched_epoch=log.last_epoch,
                        partition_max_bytes=config.fetch_bytes_max,
                        replica_directory_id=config.directory_id,
                        high_watermark=log.high_watermark,
                    )
                ],
            )
        ],
    )


def send_to_bootstrap(raft: RaftState, now_ms: int) -> int:
    """Ask a bootstrap server, or a voter that is none, for the leader; when to look again."""
    if _waits_for_flush(raft):
        return FOREVER_MS
    voters = raft.other_voters()
    node = raft.requests.ready_to_ask(voters, now_ms)
    if node is not None:
        raft.send(node, lambda: build_request(raft), now_ms)
    return raft.requests.ask_again_at_ms(voters, now_ms)


def send_to_leader(raft: RaftState, follower: Follower, now_ms: int) -> int:
    """The next Fetch: to the leader, or to a bootstrap server while the leader does not answer.

    A fetch acknowledges the log, so it goes out only once the log is durable.
    """
    node = raft.node_of(follower.leader_id, follower.leader_endpoints)
    if node is None:
        return send_to_bootstrap(raft, now_ms)
    if raft.requests.has_timed_out(node, now_ms):
        raft.requests.reset(node.id)
        raft.requests.back_off(node, now_ms)
        return send_to_bootstrap(raft, now_ms)
    if raft.requests.is_backing_off(node, now_ms):
        retry_at_ms = raft.requests.ready_at_ms(node, now_ms)
        return min(retry_at_ms, send_to_bootstrap(raft, now_ms))
    if _waits_for_flush(raft):
        return FOREVER_MS
    return raft.send(node, lambda: build_request(raft), now_ms)[1]


def _waits_for_flush(raft: RaftState) -> bool:
    """Whether a Fetch must wait until the log is durable.

    Whoever answers may be the leader, and may count this replica among the voters before it knows
    that itself: so every replica that can be a voter acknowledges durable records only.
    """
    if not raft.config.can_be_voter or raft.log.flushed_offset >= raft.log.end_offset:
        return False
    append.request_flush(raft)
    return True


def handle_response(
    raft: RaftState, node_id: int, sent: m.FetchRequest, response: m.FetchResponse, now_ms: int
) -> bool:
    if not common.top_level_ok(response.error_code):
        return False
    partition = _answered_partition(response)
    if partition is None:
        return False
    current = partition.current_leader
    leader_id = common.optional_id(current.leader_id)
    endpoints = raft.endpoints_from(leader_id, response.node_endpoints)
    done = common.handled(
        raft, partition.error_code, leader_id, current.leader_epoch, endpoints, now_ms
    )
    if done is not None:
        return done
    role = raft.role
    if partition.error_code != ErrorCode.NONE or not isinstance(role, Follower):
        return False
    asked = sent.topics[0].partitions[0]
    if asked.fetch_offset != raft.log.end_offset:
        # An answer that time has overtaken. (One without an error is always the leader's.)
        return True
    accepted = _apply(raft, role, partition)
    if accepted:
        role.has_fetched = True
        raft.heard_of_leader(role, now_ms)
        if 0 <= partition.high_watermark <= raft.log.high_watermark:
            raft.complete = (partition.high_watermark, now_ms)
    return accepted


def _apply(raft: RaftState, follower: Follower, partition: m.FetchResponse.PartitionData) -> bool:
    """What the leader says of this replica's position: truncate, load a snapshot, or go on."""
    diverging = partition.diverging_epoch if partition.is_set("diverging_epoch") else None
    if diverging is not None and diverging.epoch >= 0:
        if diverging.end_offset < 0:
            return False
        truncate(raft, OffsetAndEpoch(diverging.end_offset, diverging.epoch))
        return True
    snapshot = partition.snapshot_id if partition.is_set("snapshot_id") else None
    if snapshot is not None and max(snapshot.epoch, snapshot.end_offset) >= 0:
        if snapshot.epoch < 0 or snapshot.end_offset < 0:
            return False
        wanted = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)
        if wanted not in raft.log.snapshots:
            follower.fetching = SnapshotFetch(wanted)
        return True
    records = partition.records
    if records is not None and len(records):
        assert not isinstance(records, list), "what was decoded is one buffer"
        shapes, size_bytes = batch_shapes(
            records, next_offset=raft.log.end_offset, epoch_max=raft.epoch
        )
        if not shapes or shapes[0].epoch < raft.log.last_epoch:
            return False
        append.append_fetched(raft, shapes, bytes(memoryview(records)[:size_bytes]))
    if partition.high_watermark >= 0:
        append.commit(raft, min(partition.high_watermark, raft.log.end_offset))
    return True


def truncate(raft: RaftState, diverging: OffsetAndEpoch) -> None:
    """Cut the log to where it may agree with the leader's; never below what is committed."""
    offset = raft.log.truncation_offset(diverging)
    check(
        offset >= raft.log.high_watermark,
        f"the leader wants the log cut to {offset}, committed is {raft.log.high_watermark}",
    )
    append.forget_flush(raft)
    raft.log.truncate_to(offset)
    raft.voters.truncate_to(offset)
    raft.emit(fx.TruncateTo(offset))
    raft.voters_changed()
