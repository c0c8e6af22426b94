"""AlterShareGroupOffsets, version 0: let a share group begin elsewhere.

Only groups without members may be altered (NON_EMPTY_GROUP); one that there is not is made, one of
another kind is GROUP_ID_NOT_FOUND. Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION,
those of topics that the principal may not read TOPIC_AUTHORIZATION_FAILED. Source: KIP-932;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.share_groups import check_share_groups
from kwire.coordinator.replies import convert_all
from kwire.kraft.controller.results import text_of
from kwire.pending import Answer, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
READ_GROUP = Requires(Operation.READ, ResourceType.GROUP, "group_id")
READ_TOPIC = Requires(
    Operation.READ, ResourceType.TOPIC, "topics[].topic_name", denied=Denied.ENTRY
)
AUTHORIZATION = (READ_GROUP, READ_TOPIC)

AskedTopic: TypeAlias = "m.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic"
Topic: TypeAlias = "m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic"


def handle(
    context: RequestContext, request: m.AlterShareGroupOffsetsRequest
) -> Answer[m.AlterShareGroupOffsetsResponse]:
    """See the module."""
    check_share_groups(context)
    if not context.allows(READ_GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    known = context.parts.metadata.image.topics.by_name
    refused: list[Topic] = []
    allowed: list[AskedTopic] = []
    for topic in {x.topic_name: x for x in reversed(request.topics)}.values():
        if not context.allows(READ_TOPIC, topic.topic_name):
            refused.append(_refused(context, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic.topic_name not in known:
            refused.append(_refused(context, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            allowed.append(topic)
    asked = m.AlterShareGroupOffsetsRequest(
        group_id=request.group_id, topics=list(reversed(allowed))
    )
    answer = context.parts.coordinators.groups.share.alter_offsets(asked)

    def merged(response: m.AlterShareGroupOffsetsResponse) -> m.AlterShareGroupOffsetsResponse:
        if not response.error_code:
            response.responses = list(reversed(refused)) + response.responses
        return response

    return convert_all(as_pending(answer), lambda done: merged(done.result()))


def error_response(context: RequestContext, error: KafkaError) -> m.AlterShareGroupOffsetsResponse:
    """The code and its text."""
    return m.AlterShareGroupOffsetsResponse(
        error_code=int(error.code), error_message=text_of(error)
    )


def _refused(context: RequestContext, topic: AskedTopic, code: ErrorCode) -> Topic:
    shape = m.AlterShareGroupOffsetsResponse
    known = context.parts.metadata.image.topics.by_name.get(topic.topic_name)
    text = text_of(KafkaError(code))
    made = shape.AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            shape.AlterShareGroupOffsetsResponsePartition(
                partition_index=x.partition_index, error_code=int(code), error_message=text
            )
            for x in topic.partitions
        ],
    )
    if known is not None:
        made.topic_id = known.topic_id
    return made
