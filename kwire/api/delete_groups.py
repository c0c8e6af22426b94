"""DeleteGroups, versions 0-3: delete groups without members, and their offsets.

NON_EMPTY_GROUP for a group with members, GROUP_ID_NOT_FOUND for one that does not exist; v3 has a
message (KIP-1071). Source: KIP-229; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.group.refusals import deletable_group_error
from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext

VERSIONS = (0, 3)
DELETE_GROUP = Requires(Operation.DELETE, ResourceType.GROUP, "groups_names[]", denied=Denied.ENTRY)
AUTHORIZATION = (DELETE_GROUP,)


def handle(
    context: RequestContext, request: m.DeleteGroupsRequest
) -> Answer[m.DeleteGroupsResponse]:
    """See the module."""
    allowed, refused = [], []
    for group_id in dict.fromkeys(request.groups_names):
        if context.allows(DELETE_GROUP, group_id):
            allowed.append(group_id)
        else:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            refused.append(deletable_group_error(group_id, code))
    answer = context.parts.coordinators.groups.delete_groups(allowed)
    pending = as_pending(answer)
    return convert_all(
        pending, lambda done: m.DeleteGroupsResponse(results=done.result() + refused)
    )


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Errors are told per group only."""
    return DISCONNECT
