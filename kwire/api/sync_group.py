"""SyncGroup, versions 0-5: get one's assignment; the leader's request brings all of them.

v3 has static members, v5 requires the protocol type and name that JoinGroup told
(INCONSISTENT_GROUP_PROTOCOL without them). Followers wait for the leader. Source: KIP-345, KIP-559;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
TAKES_TURNS = True  # members are many
READ_GROUP = Requires(Operation.READ, ResourceType.GROUP, "group_id")
AUTHORIZATION = (READ_GROUP,)
PROTOCOL_REQUIRED_FROM = 5


def handle(context: RequestContext, request: m.SyncGroupRequest) -> Answer[m.SyncGroupResponse]:
    """See the module."""
    if context.api_version >= PROTOCOL_REQUIRED_FROM and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return m.SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.allows(READ_GROUP, request.group_id):
        return m.SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.parts.coordinators.groups.sync(request)


def error_response(context: RequestContext, error: KafkaError) -> m.SyncGroupResponse:
    """The code and no assignment."""
    return m.SyncGroupResponse(error_code=error.code)
