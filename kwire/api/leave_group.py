"""LeaveGroup, versions 0-5: members leave a classic group.

v0-2 name one member; v3 takes a list, in which an instance id alone removes a static member
(KIP-345), with an error each; v5 has a reason. Source: KIP-345, KIP-800; measured on Apache Kafka
4.4.
"""

from __future__ import annotations

from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
AUTHORIZATION = (Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),)
MEMBERS_FROM = 3


def handle(context: RequestContext, request: m.LeaveGroupRequest) -> Answer[m.LeaveGroupResponse]:
    """See the module."""
    if context.api_version >= MEMBERS_FROM:
        return context.parts.coordinators.groups.leave(request)
    identity = m.LeaveGroupRequest.MemberIdentity(member_id=request.member_id)
    answer = context.parts.coordinators.groups.leave(
        m.LeaveGroupRequest(group_id=request.group_id, members=[identity])
    )
    if isinstance(answer, Pending):
        return after(answer, lambda done: _of_one(done.result()))
    return _of_one(answer)


def error_response(context: RequestContext, error: KafkaError) -> m.LeaveGroupResponse:
    """The code and no members."""
    return _error(error.code)


def _of_one(response: m.LeaveGroupResponse) -> m.LeaveGroupResponse:
    """The error of the only member is that of the answer."""
    if response.error_code or not response.members:
        return _error(response.error_code)
    return _error(response.members[0].error_code)


def _error(code: int) -> m.LeaveGroupResponse:
    return m.LeaveGroupResponse(error_code=code)
