"""OffsetForLeaderEpoch, versions 2-4: where a leader epoch ended in this leader's log (KIP-101).

Answers with the largest epoch not above the one asked for and its end offset; (-1, -1) when there
is none. current_leader_epoch is checked (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH). Many
partitions are answered in slices, each as it is in its turn. Source:
KIP-101, KIP-320; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext
from kwire.server.leader_hints import missing_partition_error
from kwire.server.sliced_response import SlicedResponse, add_topics

VERSIONS = (2, 4)
FOLLOW = Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE, ResourceType.TOPIC, "topics[].topic", denied=Denied.ENTRY
)
AUTHORIZATION = (DESCRIBE_TOPIC._replace(instead=(FOLLOW,)),)

SLICE_PARTITIONS = 300
"""A slice is about 1 ms. Fewer partitions are answered at once, those of one topic together."""

TopicAnswer: TypeAlias = "m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult"
Asked: TypeAlias = "m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition"


def handle(
    context: RequestContext, request: m.OffsetForLeaderEpochRequest
) -> Answer[m.OffsetForLeaderEpochResponse] | Pending[SlicedResponse]:
    """See the module."""
    answers = _answers(context, request)
    if sum([len(topic.partitions) for topic in request.topics]) > SLICE_PARTITIONS:
        response = m.OffsetForLeaderEpochResponse()
        sliced = SlicedResponse(response, "topics", context.api_version)
        work = add_topics(answers, sliced.add, SLICE_PARTITIONS)
        return context.parts.slices.run(work, lambda: sliced)
    return m.OffsetForLeaderEpochResponse(topics=list(answers))


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in the response can carry an error of the whole request."""
    return DISCONNECT


def _answers(
    context: RequestContext, request: m.OffsetForLeaderEpochRequest
) -> Iterator[TopicAnswer]:
    """The answer for each topic, made when it is taken."""
    follower = context.sees(FOLLOW)
    for topic in request.topics:
        entry = m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult()
        entry.topic = topic.topic
        entry.partitions = []
        allowed = follower or context.allows(DESCRIBE_TOPIC, topic.topic)
        for asked in topic.partitions:
            answer = m.OffsetForLeaderEpochResponse.EpochEndOffset()
            answer.partition = asked.partition
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                answer.leader_epoch, answer.end_offset = _look_up(context, topic.topic, asked)
            except KafkaError as error:
                answer.error_code = int(error.code)
            entry.partitions.append(answer)
        yield entry


def _look_up(context: RequestContext, topic: str, asked: Asked) -> tuple[int, int]:
    parts = context.parts
    partition = parts.replicas.partition(topic, asked.partition)
    if partition is None:
        raise KafkaError(
            missing_partition_error(parts.metadata.image.topics, topic, asked.partition)
        )
    return partition.leader_log(asked.current_leader_epoch).end_offset_for_epoch(asked.leader_epoch)
