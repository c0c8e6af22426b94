"""DeleteAcls, versions 1-3: access control entries by filters.

Without an authorizer every filter is SECURITY_DISABLED. Source: KIP-140, KIP-290, KIP-801;
kwire/kraft/controller/requests/acls.py.
A request that names anything UNKNOWN (0) loses its connection (measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.kraft.controller.requests.acls import UNKNOWN
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext

VERSIONS = (1, 3)
AUTHORIZATION = (Requires(Operation.ALTER, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.DeleteAclsRequest
) -> Answer[m.DeleteAclsResponse] | Disconnect:
    """See the module."""
    for wanted in request.filters:
        kinds = (wanted.resource_type_filter, wanted.pattern_type_filter)
        if UNKNOWN in (*kinds, wanted.operation, wanted.permission_type):
            return DISCONNECT
    return forward(context, request)
