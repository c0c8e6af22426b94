"""ListOffsets, versions 1-11: an offset by time, or by one of the special timestamps.

    -1 LATEST           high watermark, or last stable offset with isolation_level 1
    -2 EARLIEST         log start
    -3 MAX_TIMESTAMP    the record with the largest timestamp (version 7)
    -4 EARLIEST_LOCAL   log start on this broker's disk (version 8)
    -5 LATEST_TIERED    last offset in remote storage (version 9); -1 without one
    -6 EARLIEST_PENDING_UPLOAD  first offset to be uploaded (version 11); -1 without remote storage

A special timestamp below its version is UNSUPPORTED_VERSION on that partition; a partition that
is named twice is INVALID_REQUEST, and an isolation level that there is not UNKNOWN_SERVER_ERROR.
The answer of a time look-up is the first record at or after it below the high watermark (or the
last stable offset), timestamp and offset -1 when there is none. A topic is answered once. Many
partitions are answered in slices, each as it is in its turn.
Source: KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TypeAlias

from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import ISOLATION_LEVELS, READ_COMMITTED, TimestampOffset
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext
from kwire.server.leader_hints import missing_partition_error
from kwire.server.sliced_response import SlicedResponse, add_topics

VERSIONS = (1, 11)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE, ResourceType.TOPIC, "topics[].name", denied=Denied.ENTRY
)
AUTHORIZATION = (DESCRIBE_TOPIC,)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_FROM = 4
DEBUGGING_REPLICA_ID = -2

SLICE_PARTITIONS = 300
"""A slice is about 2 ms. Fewer partitions are answered at once, those of one topic together."""

Asked: TypeAlias = "m.ListOffsetsRequest.ListOffsetsPartition"
TopicAnswer: TypeAlias = "m.ListOffsetsResponse.ListOffsetsTopicResponse"
Wanted = dict[str, dict[int, Asked]]
"""Topic and partition -> what is asked of it first."""

Found = tuple[int, int, int]
"""(timestamp, offset, leader epoch)."""
NOT_FOUND: Found = (-1, -1, -1)


def handle(
    context: RequestContext, request: m.ListOffsetsRequest
) -> Answer[m.ListOffsetsResponse] | Pending[SlicedResponse]:
    """See the module."""
    wanted: Wanted = {}
    doubled: dict[tuple[str, int], None] = {}
    count = 0
    for topic in request.topics:
        partitions = wanted.setdefault(topic.name, {})
        for asked in topic.partitions:
            if partitions.setdefault(asked.partition_index, asked) is not asked:
                doubled[topic.name, asked.partition_index] = None
            count += 1
    answers = _answers(context, request, wanted, doubled)
    if count > SLICE_PARTITIONS:
        sliced = SlicedResponse(m.ListOffsetsResponse(), "topics", context.api_version)
        work = add_topics(answers, sliced.add, SLICE_PARTITIONS)
        return context.slices.run(work, lambda: sliced)
    return m.ListOffsetsResponse(topics=list(answers))


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in a ListOffsetsResponse can carry an error of the whole request."""
    return DISCONNECT


def _answers(
    context: RequestContext,
    request: m.ListOffsetsRequest,
    wanted: Wanted,
    doubled: Container[tuple[str, int]],
) -> Iterator[TopicAnswer]:
    """The answer for each topic, made when it is taken; what may not be seen stands at the end,
    as it stands in the request."""
    is_unknown = request.isolation_level not in ISOLATION_LEVELS
    hidden: set[str] = set()
    for name, partitions in wanted.items():
        if not is_unknown and not context.allows(DESCRIBE_TOPIC, name):
            hidden.add(name)
            continue
        if not partitions:
            continue
        entry = m.ListOffsetsResponse.ListOffsetsTopicResponse(name=name, partitions=[])
        for index, asked in partitions.items():
            answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse()
            answer.partition_index = index
            entry.partitions.append(answer)
            try:
                if is_unknown:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                if (name, index) in doubled:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                timestamp, offset, epoch = _look_up(context, request, name, asked)
            except KafkaError as error:
                answer.error_code = int(error.code)
                continue
            answer.timestamp, answer.offset = timestamp, offset
            if context.api_version >= LEADER_EPOCH_FROM:
                answer.leader_epoch = epoch
        yield entry
    if hidden:
        yield from (_hidden(topic) for topic in request.topics if topic.name in hidden)


def _hidden(topic: m.ListOffsetsRequest.ListOffsetsTopic) -> TopicAnswer:
    answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse
    return m.ListOffsetsResponse.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            answer(
                partition_index=asked.partition_index,
                error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            )
            for asked in topic.partitions
        ],
    )


def _look_up(
    context: RequestContext,
    request: m.ListOffsetsRequest,
    topic: str,
    asked: Asked,
) -> Found:
    timestamp = asked.timestamp
    if timestamp < 0 and context.api_version < FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    parts = context.parts
    partition = parts.replicas.partition(topic, asked.partition_index)
    if partition is None:
        topics = parts.metadata.image.topics
        raise KafkaError(missing_partition_error(topics, topic, asked.partition_index))
    if request.replica_id == DEBUGGING_REPLICA_ID:
        log = partition.readable_log(asked.current_leader_epoch)
    else:
        log = partition.leader_log(asked.current_leader_epoch)
    if request.replica_id >= 0:
        visible_end = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        visible_end = log.last_stable_offset
    else:
        visible_end = log.high_watermark
    if timestamp == LATEST:
        return -1, visible_end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset, _earliest_epoch(log)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp_offset()
    else:
        found = log.offset_for_timestamp(timestamp)
    return _visible(found, visible_end)


def _visible(found: TimestampOffset | None, visible_end: int) -> Found:
    if found is None or found.offset >= visible_end:
        return NOT_FOUND
    return found


def _earliest_epoch(log: PartitionLog) -> int:
    """The epoch of the log's start, when it is known (-1: the log never had a leader)."""
    entries = log.leader_epochs.entries
    if entries and entries[0][1] <= log.log_start_offset:
        return entries[0][0]
    return -1
