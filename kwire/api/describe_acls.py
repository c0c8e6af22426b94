"""DescribeAcls, versions 1-3: the access control entries that fit a filter, by resource.

Without an authorizer the answer is SECURITY_DISABLED - but not where the metadata holds entries, as
that of a copied Kafka directory may: what is kept is shown. Source: KIP-140, KIP-290.
A request that names anything UNKNOWN (0) loses its connection (measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from kwire.kraft.controller.requests.acls import UNKNOWN
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import matches_filter
from kwire.security.requirements import Requires
from kwire.server.context import DISCONNECT, Disconnect, RequestContext

VERSIONS = (1, 3)
DESCRIBE_CLUSTER = Requires(Operation.DESCRIBE, ResourceType.CLUSTER)
AUTHORIZATION = (DESCRIBE_CLUSTER,)


def handle(
    context: RequestContext, request: m.DescribeAclsRequest
) -> Answer[m.DescribeAclsResponse] | Disconnect:
    """See the module."""
    kinds = (request.resource_type_filter, request.pattern_type_filter)
    if UNKNOWN in (*kinds, request.operation, request.permission_type):
        return DISCONNECT
    if not context.allows(DESCRIBE_CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if context.parts.authorizer is None and not context.parts.metadata.image.acls:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    answer = m.DescribeAclsResponse
    resources: dict[tuple[int, str, int], list[m.DescribeAclsResponse.AclDescription]] = {}
    for _, acl in sorted(context.parts.metadata.image.acls.items()):
        if matches_filter(request, acl):
            key = (acl.resource_type, acl.resource_name, acl.pattern_type)
            resources.setdefault(key, []).append(
                answer.AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
            )
    return answer(
        error_message="",
        resources=[
            answer.DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls
            )
            for (kind, name, pattern), acls in resources.items()
        ],
    )
