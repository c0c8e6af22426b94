"""OffsetDelete, version 0: forget committed offsets of a group.

GROUP_SUBSCRIBED_TO_TOPIC for topics that the group's members consume, NON_EMPTY_GROUP for a group
with members of another kind than consumers, GROUP_ID_NOT_FOUND for no group. Source: KIP-496;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.committed_topics import READ_TOPIC, TopicSorter
from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION = (
    Requires(Operation.DELETE, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),
    READ_TOPIC,
)

Asked: TypeAlias = "m.OffsetDeleteRequest.OffsetDeleteRequestTopic"
Refused: TypeAlias = "m.OffsetDeleteResponse.OffsetDeleteResponseTopic"
Sorter: TypeAlias = "TopicSorter[Asked, Refused]"


def handle(
    context: RequestContext, request: m.OffsetDeleteRequest
) -> Answer[m.OffsetDeleteResponse]:
    """See the module."""
    sorter = TopicSorter(context, _refusal)
    request.topics = sorter.pass_topics(request.topics)
    answer = context.parts.coordinators.groups.delete_offsets(request)
    pending = as_pending(answer)
    return convert_all(pending, lambda done: _merged(sorter, done.result()))


def error_response(context: RequestContext, error: KafkaError) -> m.OffsetDeleteResponse:
    """The code and no topics."""
    return m.OffsetDeleteResponse(error_code=error.code)


def _refusal(topic: Asked, indexes: list[int], code: ErrorCode) -> Refused:
    """The topic of the response that refuses these partitions."""
    shape = m.OffsetDeleteResponse.OffsetDeleteResponsePartition
    return m.OffsetDeleteResponse.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[shape(partition_index=index, error_code=code) for index in indexes],
    )


def _merged(sorter: Sorter, response: m.OffsetDeleteResponse) -> m.OffsetDeleteResponse:
    if response.error_code == ErrorCode.NONE:
        response.topics = sorter.merge(response.topics)
    return response
