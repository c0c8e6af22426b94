"""DeleteShareGroupOffsets, version 0: let a share group forget topics.

Only groups without members may forget (NON_EMPTY_GROUP); one that there is not, or of another
kind, is GROUP_ID_NOT_FOUND. A topic that does not exist, or that the group knows nothing of, is
UNKNOWN_TOPIC_OR_PARTITION, one that the principal may not read TOPIC_AUTHORIZATION_FAILED. Source:
KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

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
DELETE_GROUP = Requires(Operation.DELETE, ResourceType.GROUP, "group_id")
READ_TOPIC = Requires(
    Operation.READ, ResourceType.TOPIC, "topics[].topic_name", denied=Denied.ENTRY
)
AUTHORIZATION = (DELETE_GROUP, READ_TOPIC)


def handle(
    context: RequestContext, request: m.DeleteShareGroupOffsetsRequest
) -> Answer[m.DeleteShareGroupOffsetsResponse]:
    """See the module."""
    check_share_groups(context)
    if not context.allows(DELETE_GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    shape = m.DeleteShareGroupOffsetsResponse
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refused, allowed = [], []
    for topic in request.topics:
        if context.allows(READ_TOPIC, topic.topic_name):
            allowed.append(topic)
            continue
        refused.append(
            shape.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                error_code=int(denied.code),
                error_message=text_of(denied),
            )
        )
    asked = m.DeleteShareGroupOffsetsRequest(group_id=request.group_id, topics=allowed)
    answer = context.parts.coordinators.groups.share.delete_offsets(asked)

    def merged(response: m.DeleteShareGroupOffsetsResponse) -> m.DeleteShareGroupOffsetsResponse:
        if not response.error_code:
            response.responses = response.responses + refused
        return response

    return convert_all(as_pending(answer), lambda done: merged(done.result()))


def error_response(context: RequestContext, error: KafkaError) -> m.DeleteShareGroupOffsetsResponse:
    """The code and its text."""
    return m.DeleteShareGroupOffsetsResponse(
        error_code=int(error.code), error_message=text_of(error)
    )
