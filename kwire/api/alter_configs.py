"""AlterConfigs, versions 0-2: replace all configs of a resource; what is not named is deleted.

Source: KIP-133 (superseded by IncrementalAlterConfigs); measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.config_changes import ALTER_GROUPS, ALTER_TOPICS, alter, check_replacing
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
AUTHORIZATION = (
    ALTER_TOPICS,
    ALTER_GROUPS,
    Requires(
        Operation.ALTER_CONFIGS,
        ResourceType.CLUSTER,
        denied=Denied.ENTRY,
        checked=Checked.CONTROLLER,
        note="all other resources",
    ),
)


def handle(
    context: RequestContext, request: m.AlterConfigsRequest
) -> Answer[m.AlterConfigsResponse]:
    """See the module."""
    return alter(
        context,
        request,
        request.resources,
        lambda resource: check_replacing(context, resource),
        m.AlterConfigsResponse,
    )
