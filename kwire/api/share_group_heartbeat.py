"""ShareGroupHeartbeat, version 1: membership of a share group.

Joining (epoch 0), going on, leaving (-1); the member chooses its id, of 36 characters at most.
UNSUPPORTED_VERSION where the feature share.version is off. Topics that the principal may not
describe are TOPIC_AUTHORIZATION_FAILED. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.share_groups import check_share_groups
from kwire.coordinator.group.caller import Caller
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 1)
WAITS_FOR_WRITES = False
TAKES_TURNS = True  # members are many
READ_GROUP = Requires(Operation.READ, ResourceType.GROUP, "group_id")
DESCRIBE_TOPIC = Requires(Operation.DESCRIBE, ResourceType.TOPIC, "subscribed_topic_names[]")
AUTHORIZATION = (READ_GROUP, DESCRIBE_TOPIC)
MEMBER_ID_LENGTH_MAX = 36


def handle(
    context: RequestContext, request: m.ShareGroupHeartbeatRequest
) -> Answer[m.ShareGroupHeartbeatResponse]:
    """See the module."""
    check_share_groups(context)
    if not context.allows(READ_GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for name in request.subscribed_topic_names or ():
        if not context.allows(DESCRIBE_TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = Caller(context.api_version, context.client_id or "", context.client_host)
    return context.parts.coordinators.groups.share.heartbeat(request, caller)


def error_response(context: RequestContext, error: KafkaError) -> m.ShareGroupHeartbeatResponse:
    """The code and its text."""
    return m.ShareGroupHeartbeatResponse(error_code=int(error.code), error_message=error.message)
