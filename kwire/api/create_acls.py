"""CreateAcls, versions 1-3: access control entries in the metadata log.

Without an authorizer every entry is SECURITY_DISABLED. Source: KIP-140, KIP-290, KIP-801;
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
    context: RequestContext, request: m.CreateAclsRequest
) -> Answer[m.CreateAclsResponse] | Disconnect:
    """See the module."""
    for acl in request.creations:
        kinds = (acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)
        if UNKNOWN in kinds:
            return DISCONNECT
    return forward(context, request)
