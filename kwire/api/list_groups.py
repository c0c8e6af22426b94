"""ListGroups, versions 0-5: the groups that this broker coordinates, of every kind.

v4 has states and a filter by them, v5 types; filters ignore case. Without DESCRIBE on the cluster
only the groups are told that the principal may describe. Source: KIP-518, KIP-848; measured on
Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.replies import convert_all
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
DESCRIBE_CLUSTER = Requires(Operation.DESCRIBE, ResourceType.CLUSTER)
DESCRIBE_GROUP = Requires(Operation.DESCRIBE, ResourceType.GROUP, denied=Denied.LEFT_OUT)
AUTHORIZATION = (DESCRIBE_GROUP._replace(instead=(DESCRIBE_CLUSTER,)),)


def handle(context: RequestContext, request: m.ListGroupsRequest) -> Answer[m.ListGroupsResponse]:
    """See the module."""
    everything = context.sees(DESCRIBE_CLUSTER)

    def answer(done: Pending[m.ListGroupsResponse]) -> m.ListGroupsResponse:
        response = done.result()
        if not everything:
            response.groups = [
                x for x in response.groups if context.allows(DESCRIBE_GROUP, x.group_id)
            ]
        return response

    found = context.parts.coordinators.groups.list_groups(
        request.states_filter, request.types_filter
    )
    return convert_all(as_pending(found), answer)


def error_response(context: RequestContext, error: KafkaError) -> m.ListGroupsResponse:
    """The code and no groups."""
    return m.ListGroupsResponse(error_code=error.code)
