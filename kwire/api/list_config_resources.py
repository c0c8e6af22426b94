"""ListConfigResources, versions 0-1: names of the resources that configs can be set on.

Version 0 asks for client metrics subscriptions alone; no types named means all. Topics, brokers
and loggers are those that exist; groups and client metrics those that have configs.
Source: KIP-1142; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.config.dynamic import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (
    Requires(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, checked=Checked.BEFORE),
)
_ALL = (
    RESOURCE_TOPIC,
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
)


def handle(
    context: RequestContext, request: m.ListConfigResourcesRequest
) -> Answer[m.ListConfigResourcesResponse]:
    """See the module."""
    if context.api_version == 0:
        wanted: tuple[int, ...] = (RESOURCE_CLIENT_METRICS,)
    else:
        wanted = tuple(dict.fromkeys(request.resource_types)) or _ALL
    if any(kind not in _ALL for kind in wanted):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    answer = m.ListConfigResourcesResponse
    return answer(
        config_resources=[
            answer.ConfigResource(resource_name=name, resource_type=kind)
            for kind in wanted
            for name in _names(context, kind)
        ]
    )


def _names(context: RequestContext, kind: int) -> list[str]:
    image = context.parts.metadata.image
    if kind == RESOURCE_TOPIC:
        return sorted(image.topics.by_name)
    if kind in (RESOURCE_BROKER, RESOURCE_BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    return sorted(name for resource_type, name in image.configs if resource_type == kind)
