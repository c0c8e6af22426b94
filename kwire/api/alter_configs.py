"""AlterConfigs, versions 0-2: replace all configs of a resource; what is not named is deleted.

Source: KIP-133 (superseded by IncrementalAlterConfigs); measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.config_changes import (
    ALTER_BROKERS,
    ALTER_GROUPS,
    ALTER_SUBSCRIPTIONS,
    ALTER_TOPICS,
    alter,
    check_replacing,
)
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
AUTHORIZATION = (
    ALTER_TOPICS,
    ALTER_GROUPS,
    ALTER_BROKERS,
    ALTER_SUBSCRIPTIONS,
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
