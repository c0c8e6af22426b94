"""DescribeGroups, versions 0-6: state, protocol and members of classic groups.

A group that does not exist is Dead, until v5 without an error, in v6 with GROUP_ID_NOT_FOUND and a
message (KIP-1043). Members' metadata and assignments are told of a Stable group; v3 has authorised
operations. Source: KIP-430, KIP-1043; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.api.shared.described_groups import SLICE_MEMBERS, in_slices
from kwire.pending import Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import authorized_operations
from kwire.server.context import DISCONNECT, Disconnect, RequestContext
from kwire.server.sliced_response import SlicedResponse

VERSIONS = (0, 6)
DESCRIBE_GROUP = Requires(Operation.DESCRIBE, ResourceType.GROUP, "groups[]", denied=Denied.ENTRY)
AUTHORIZATION = (DESCRIBE_GROUP,)
OPERATIONS_FROM = 3
NOT_FOUND_FROM = 6


def handle(
    context: RequestContext, request: m.DescribeGroupsRequest
) -> m.DescribeGroupsResponse | Pending[m.DescribeGroupsResponse | SlicedResponse]:
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

    def complete(group: m.DescribeGroupsResponse.DescribedGroup) -> None:
        unknown = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if unknown and context.api_version < NOT_FOUND_FROM:
            group.error_code, group.error_message = ErrorCode.NONE, None
        if operations and context.api_version >= OPERATIONS_FROM and not group.error_code:
            group.authorized_operations = authorized_operations(
                context, ResourceType.GROUP, group.group_id
            )

    def at_once(
        groups: list[m.DescribeGroupsResponse.DescribedGroup],
    ) -> m.DescribeGroupsResponse:
        for group in groups:
            complete(group)
        return m.DescribeGroupsResponse(groups=refused + groups)

    def encoded(
        groups: list[m.DescribeGroupsResponse.DescribedGroup], response: SlicedResponse
    ) -> Iterator[None]:
        response.add(refused)
        for group in groups:
            complete(group)
            members, group.members = group.members, []
            element = response.begin_element(group, "members")
            for begin in range(0, len(members), SLICE_MEMBERS):
                element.add(members[begin : begin + SLICE_MEMBERS])
                yield
            element.end()

    found = context.parts.coordinators.groups.describe_groups(allowed)
    return in_slices(
        context,
        as_pending(found),
        lambda group: len(group.members),
        at_once,
        encoded,
        lambda: SlicedResponse(m.DescribeGroupsResponse(groups=[]), "groups", context.api_version),
    )


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Errors are told per group only."""
    return DISCONNECT
