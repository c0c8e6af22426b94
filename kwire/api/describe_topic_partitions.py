"""DescribeTopicPartitions, version 0: partitions with their eligible leaders, page by page.

Topics come in the order of their names; no topics named means all. `response_partition_limit`
bounds the partitions of an answer (at least 1, at most max.request.partition.size.limit); the
cursor of the answer is where the next request goes on. Source: KIP-966; measured on Apache
Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.topic_names import is_valid
from kwire.kraft.images.topics import PartitionImage, TopicImage
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS, authorized_operations
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    "topics[].name",
    denied=Denied.ENTRY,
    note="left out where all topics are asked for",
)
AUTHORIZATION = (DESCRIBE_TOPIC,)

Topic: TypeAlias = "m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic"
Partition: TypeAlias = "m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition"


def handle(
    context: RequestContext, request: m.DescribeTopicPartitionsRequest
) -> Answer[m.DescribeTopicPartitionsResponse]:
    """See the module."""
    cursor = request.cursor
    try:
        names = _names(context, request)
    except KafkaError as error:
        return _refused(request, error.code)
    hidden = []
    shown = []
    is_seen = context.allows if request.topics else context.sees
    for name in names:
        if is_seen(DESCRIBE_TOPIC, name):
            shown.append(name)
        elif request.topics:
            hidden.append(_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, False))
    limit = context.parts.config["max.request.partition.size.limit"]
    remaining = max(min(limit, request.response_partition_limit), 1)
    response = m.DescribeTopicPartitionsResponse(topics=[])
    for name in shown:
        start = cursor.partition_index if cursor and cursor.topic_name == name else 0
        if remaining == 0:
            response.next_cursor = _cursor(name, 0)
            break
        topic = context.parts.metadata.image.topics.by_name.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_missing(name))
            continue
        end = min(len(topic.partitions), start + remaining)
        answer = _topic(context, topic, start, end)
        response.topics.append(answer)
        if end < len(topic.partitions):
            response.next_cursor = _cursor(name, end)
            break
        remaining -= len(answer.partitions)
    for answer in response.topics:
        answer.topic_authorized_operations = authorized_operations(
            context, ResourceType.TOPIC, answer.name or ""
        )
    response.topics += hidden
    return response


def error_response(context: RequestContext, error: KafkaError) -> m.DescribeTopicPartitionsResponse:
    """No topics: the request is not at hand any more."""
    return m.DescribeTopicPartitionsResponse(topics=[])


def _refused(
    request: m.DescribeTopicPartitionsRequest, code: ErrorCode
) -> m.DescribeTopicPartitionsResponse:
    """The response has no error of its own: every topic of the request carries it."""
    return m.DescribeTopicPartitionsResponse(
        topics=[_error(code, topic.name, False) for topic in request.topics]
    )


def _names(context: RequestContext, request: m.DescribeTopicPartitionsRequest) -> list[str]:
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    if not request.topics:
        names = list(context.parts.metadata.image.topics.by_name)
    else:
        names = list(dict.fromkeys(topic.name for topic in request.topics))
    names = sorted(name for name in names if name >= first)
    if cursor is None:
        return names
    if request.topics and first not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: " + first,
        )
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest cursor partition must be valid",
        )
    return names


def _cursor(name: str, index: int) -> m.DescribeTopicPartitionsResponse.Cursor:
    return m.DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=index)


def _error(code: ErrorCode, name: str, internal: bool) -> Topic:
    shape = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return shape(
        error_code=int(code), name=name, topic_id=uuids.ZERO, is_internal=internal, partitions=[]
    )


def _missing(name: str) -> Topic:
    code = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return _error(code, name, name in INTERNAL_TOPICS)


def _topic(context: RequestContext, topic: TopicImage, start: int, end: int) -> Topic:
    shape = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return shape(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(context, index, topic.partitions[index])
            for index in range(start, end)
            if index in topic.partitions
        ],
    )


def _partition(context: RequestContext, index: int, partition: PartitionImage) -> Partition:
    shape = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
    leader = partition.leader if _is_alive(context, partition.leader) else -1
    return shape(
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[
            replica for replica in partition.replicas if _is_offline(context, replica, partition)
        ],
    )


def _is_alive(context: RequestContext, broker_id: int) -> bool:
    broker = context.parts.metadata.image.brokers.get(broker_id)
    return (
        broker is not None
        and not broker.fenced
        and broker.endpoint(context.listener_name) is not None
    )


def _is_offline(context: RequestContext, broker_id: int, partition: PartitionImage) -> bool:
    if not _is_alive(context, broker_id):
        return True
    broker = context.parts.metadata.image.brokers[broker_id]
    return not broker.has_online_directory(partition.directory(broker_id))
