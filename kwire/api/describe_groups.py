"""DescribeGroups, versions 0-6: state, protocol and members of classic groups.

A group that does not exist is Dead, until v5 without an error, in v6 with GROUP_ID_NOT_FOUND and a
message (KIP-1043). Members' metadata and assignments are told of a Stable group; v3 has authorised
operations. Source: KIP-430, KIP-1043; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import authorized_operations
from kwire.server.context import DISCONNECT, Disconnect, RequestContext

VERSIONS = (0, 6)
DESCRIBE_GROUP = Requires(Operation.DESCRIBE, ResourceType.GROUP, "groups[]", denied=Denied.ENTRY)
AUTHORIZATION = (DESCRIBE_GROUP,)
OPERATIONS_FROM = 3
NOT_FOUND_FROM = 6


def handle(
    context: RequestContext, request: m.DescribeGroupsRequest
) -> Answer[m.DescribeGroupsResponse]:
    """See the module."""
    described = m.DescribeGroupsResponse.DescribedGroup
    allowed, refused = [], []
    for group_id in request.groups:
        if context.allows(DESCRIBE_GROUP, group_id):
            allowed.append(group_id)
        else:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            refused.append(described(group_id=group_id, error_code=code))
    operations = request.include_authorized_operations

    def answer(
        done: Pending[list[m.DescribeGroupsResponse.DescribedGroup]],
    ) -> m.DescribeGroupsResponse:
        groups = done.result()
        for group in groups:
            unknown = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            if unknown and context.api_version < NOT_FOUND_FROM:
                group.error_code, group.error_message = ErrorCode.NONE, None
            if operations and context.api_version >= OPERATIONS_FROM and not group.error_code:
                group.authorized_operations = authorized_operations(
                    context, ResourceType.GROUP, group.group_id
                )
        return m.DescribeGroupsResponse(groups=refused + groups)

    found = context.parts.coordinators.groups.describe_groups(allowed)
    return convert_all(as_pending(found), answer)


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Errors are told per group only."""
    return DISCONNECT
