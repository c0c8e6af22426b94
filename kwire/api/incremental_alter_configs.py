"""IncrementalAlterConfigs, versions 0-1: set, delete, append to and subtract from configs.

Brokers, loggers and what is malformed are checked here, the rest by the controller; resources do
not touch each other. Source: KIP-339, KIP-412; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.config_changes import (
    ALTER_BROKERS,
    ALTER_GROUPS,
    ALTER_LOGGERS,
    ALTER_SUBSCRIPTIONS,
    ALTER_TOPICS,
    alter,
    check_incremental,
)
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (
    ALTER_TOPICS,
    ALTER_GROUPS,
    ALTER_BROKERS,
    ALTER_SUBSCRIPTIONS,
    ALTER_LOGGERS,
)


def handle(
    context: RequestContext, request: m.IncrementalAlterConfigsRequest
) -> Answer[m.IncrementalAlterConfigsResponse]:
    """See the module."""
    return alter(
        context,
        request,
        request.resources,
        lambda resource: check_incremental(context, resource, request.validate_only),
        m.IncrementalAlterConfigsResponse,
    )
