"""DeleteRecords, versions 0-2: move the start of a partition's log (KIP-107).

Offset -1 is the high watermark; one above it, or below -1, is OFFSET_OUT_OF_RANGE. A topic whose
cleanup.policy lacks `delete` gives POLICY_VIOLATION. The answer's low watermark is the smallest
log start of the live replicas; -1 with an error. Source: KIP-107; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import DISCONNECT, RequestContext
from kwire.broker.leaders import missing_partition_error
from kwire.broker.operations import DELETE, INTERNAL_TOPICS, TOPIC
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

VERSIONS = (0, 2)
HIGH_WATERMARK = -1


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    response = m.DeleteRecordsResponse()
    response.topics = []
    for topic in request.topics:
        entry = m.DeleteRecordsResponse.DeleteRecordsTopicResult()
        entry.name = topic.name
        entry.partitions = []
        for asked in topic.partitions:
            answer = m.DeleteRecordsResponse.DeleteRecordsPartitionResult()
            answer.partition_index = asked.partition_index
            try:
                answer.low_watermark = _delete(context, topic.name, asked)
            except KafkaError as error:
                answer.low_watermark = -1
                answer.error_code = int(error.code)
            entry.partitions.append(answer)
        response.topics.append(entry)
    return response


def error_response(context: RequestContext, error: KafkaError) -> Any:
    """Nothing in the response can carry an error of the whole request."""
    return DISCONNECT


def _delete(context: RequestContext, topic: str, asked: Any) -> int:
    node = context.node
    if not context.authorize(DELETE, TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if node.image.topics.partition(topic, asked.partition_index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = node.replicas.partition(topic, asked.partition_index)
    if partition is None:
        raise KafkaError(missing_partition_error(node, topic, asked.partition_index))
    log = partition.leader_log()
    if not log.config.deletes:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    offset = log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
    if offset < 0 or offset > log.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_records_before(offset)
    partition.wake_fetches(0)
    return int(log.log_start_offset)
