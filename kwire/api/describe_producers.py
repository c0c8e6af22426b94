"""DescribeProducers, version 0: the producers that a partition's log remembers (KIP-664).

Source: KIP-664; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.kraft.controller.results import text_of
from kwire.kraft.controller.topic_names import check_name
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext
from kwire.server.leader_hints import missing_partition_error

VERSIONS = (0, 0)
READ_TOPIC = Requires(Operation.READ, ResourceType.TOPIC, "topics[].name", denied=Denied.ENTRY)
AUTHORIZATION = (READ_TOPIC,)

Producer: TypeAlias = "m.DescribeProducersResponse.ProducerState"


def handle(
    context: RequestContext, request: m.DescribeProducersRequest
) -> Answer[m.DescribeProducersResponse]:
    """See the module."""
    response = m.DescribeProducersResponse()
    response.topics = []
    for topic in request.topics:
        entry = m.DescribeProducersResponse.TopicResponse()
        entry.name = topic.name
        entry.partitions = []
        for index in topic.partition_indexes:
            answer = m.DescribeProducersResponse.PartitionResponse()
            answer.partition_index = index
            try:
                answer.active_producers = _producers(context, topic.name, index)
            except KafkaError as error:
                answer.error_code = int(error.code)
                answer.error_message = error.message
                if topic.name not in context.parts.metadata.image.topics.by_name:
                    answer.error_message = text_of(error)
            entry.partitions.append(answer)
        response.topics.append(entry)
    return response


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in the response can carry an error of the whole request."""
    return DISCONNECT


def _producers(context: RequestContext, topic: str, index: int) -> list[Producer]:
    if topic not in context.parts.metadata.image.topics.by_name:
        check_name(topic)
    if not context.allows(READ_TOPIC, topic):
        refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        raise KafkaError(refused.code, text_of(refused))
    partition = context.parts.replicas.partition(topic, index)
    if partition is None:
        raise KafkaError(missing_partition_error(context.parts.metadata.image.topics, topic, index))
    shape = m.DescribeProducersResponse.ProducerState
    return [
        shape(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.transaction_first_offset,
        )
        for producer in partition.leader_log().active_producers()
    ]
