"""DescribeConfigs, versions 1-4: settings of brokers, topics, groups, subscriptions and loggers.

A broker answers for itself by its id and for the cluster-wide defaults by the empty name. Groups
and client metrics subscriptions are described whether they exist or not. Keys that are null or
empty mean every config; unknown ones are left out. v3 has types, and documentation if it is asked
for: what is only set dynamically, has a listener's prefix or is unknown has none, loggers an empty
one.
Resources that the principal may not see come last. Many resources are described in slices.
Source: KIP-133, KIP-226, KIP-569, KIP-848; names, values, sources and synonyms measured on Apache
Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kwire.config import describe
from kwire.config.checks import is_number
from kwire.config.definitions import BROKER
from kwire.config.dynamic import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kwire.kraft.controller.results import INVALID_REQUEST_TEXT, text_of
from kwire.kraft.controller.topic_names import check_name
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext
from kwire.server.parts import Parts
from kwire.server.sliced_response import SlicedResponse

VERSIONS = (1, 4)
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE_CONFIGS,
    ResourceType.TOPIC,
    "resources[].resource_name",
    denied=Denied.ENTRY,
    note="resources that are topics",
)
DESCRIBE_GROUP = Requires(
    Operation.DESCRIBE_CONFIGS,
    ResourceType.GROUP,
    "resources[].resource_name",
    denied=Denied.ENTRY,
    note="resources that are groups",
)
DESCRIBE_CLUSTER = Requires(
    Operation.DESCRIBE_CONFIGS,
    ResourceType.CLUSTER,
    denied=Denied.ENTRY,
    note="all other resources",
)
AUTHORIZATION = (DESCRIBE_TOPIC, DESCRIBE_GROUP, DESCRIBE_CLUSTER)

SLICE_RESOURCES = 10
"""A slice is about 2 ms: a topic has some 40 configs."""

Resource: TypeAlias = "m.DescribeConfigsRequest.DescribeConfigsResource"
Result: TypeAlias = "m.DescribeConfigsResponse.DescribeConfigsResult"
Config: TypeAlias = "m.DescribeConfigsResponse.DescribeConfigsResourceResult"

# Resource type -> what describing it requires; of all others DESCRIBE_CLUSTER.
_REQUIRED = {RESOURCE_TOPIC: DESCRIBE_TOPIC, RESOURCE_GROUP: DESCRIBE_GROUP}
# Resource type -> the scope whose configs it has; loggers have none.
_SCOPES = {
    RESOURCE_BROKER: "broker",
    RESOURCE_TOPIC: "topic",
    RESOURCE_GROUP: "group",
    RESOURCE_CLIENT_METRICS: "client-metrics",
}


def handle(
    context: RequestContext, request: m.DescribeConfigsRequest
) -> Answer[m.DescribeConfigsResponse] | Pending[SlicedResponse]:
    """See the module."""
    if any(resource.resource_type not in _DESCRIBERS for resource in request.resources):
        return _malformed(request)
    if len(request.resources) > SLICE_RESOURCES:
        sliced = SlicedResponse(m.DescribeConfigsResponse(), "results", context.api_version)
        work = _in_slices(context, request, sliced)
        return context.slices.run(work, lambda: sliced)
    described, hidden = _results(context, request, request.resources)
    return m.DescribeConfigsResponse(results=described + hidden)


def _in_slices(
    context: RequestContext, request: m.DescribeConfigsRequest, response: SlicedResponse
) -> Iterator[None]:
    hidden: list[Result] = []
    for begin in range(0, len(request.resources), SLICE_RESOURCES):
        resources = request.resources[begin : begin + SLICE_RESOURCES]
        described, hidden_here = _results(context, request, resources)
        response.add(described)
        hidden += hidden_here
        yield
    response.add(hidden)


def _results(
    context: RequestContext, request: m.DescribeConfigsRequest, resources: Sequence[Resource]
) -> tuple[list[Result], list[Result]]:
    """Those that the principal may see, and the others."""
    described: list[Result] = []
    hidden: list[Result] = []
    for resource in resources:
        result = m.DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, configs=[]
        )
        refusal = _refusal(context, resource)
        if refusal is not None:
            result.error_code = int(refusal)
            result.error_message = text_of(KafkaError(refusal))
            hidden.append(result)
            continue
        described.append(result)
        try:
            entries = _describe(context, resource)
        except KafkaError as error:
            result.error_code = int(error.code)
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.error_message = error.message
            continue
        result.configs = [_result(entry, request.include_synonyms) for entry in entries]
    if request.include_documentation:
        _document(described)
    return described, hidden


def _document(results: list[Result]) -> None:
    """Say what each config is for; what is only set dynamically has no text, as in Kafka."""
    from kwire.config.documentation import texts

    known = texts()
    for result in results:
        scope = _SCOPES.get(result.resource_type)
        if scope is None:
            continue
        for config in result.configs:
            definition = BROKER.get(config.name) if scope == "broker" else None
            if definition is None or not definition.dynamic_only:
                config.documentation = known.get((scope, config.name))


def _malformed(request: m.DescribeConfigsRequest) -> m.DescribeConfigsResponse:
    """One resource of a type that does not exist spoils all of the request."""
    result = m.DescribeConfigsResponse.DescribeConfigsResult
    return m.DescribeConfigsResponse(
        results=[
            result(
                error_code=int(ErrorCode.INVALID_REQUEST),
                error_message=INVALID_REQUEST_TEXT,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[],
            )
            for resource in request.resources
        ]
    )


def _refusal(context: RequestContext, resource: Resource) -> ErrorCode | None:
    """The error of a principal that may not describe this resource."""
    required = _REQUIRED.get(resource.resource_type, DESCRIBE_CLUSTER)
    name = CLUSTER_NAME if required is DESCRIBE_CLUSTER else resource.resource_name
    return None if context.allows(required, name) else required.refusal


def _describe(context: RequestContext, resource: Resource) -> list[describe.Entry]:
    name, keys = resource.resource_name, resource.configuration_keys
    return _DESCRIBERS[resource.resource_type](context.parts, name, keys)


def _broker(parts: Parts, name: str, keys: Sequence[str] | None) -> list[describe.Entry]:
    dynamic = parts.dynamic_config
    if not name:
        return describe.describe_cluster_default(dynamic, keys)
    _check_own_id(
        parts, name, f"Unexpected broker id, expected {parts.broker_id} or empty string, "
    )
    return describe.describe_broker(dynamic, keys)


def _check_own_id(parts: Parts, name: str, expected: str) -> None:
    digits = name[1:] if name[:1] in ("+", "-") else name
    if not is_number(digits) or not -(1 << 31) <= int(name) < 1 << 31:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if int(name) != parts.broker_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{expected}but received {name}")


def _topic(parts: Parts, name: str, keys: Sequence[str] | None) -> list[describe.Entry]:
    check_name(name)
    if name not in parts.metadata.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    overrides = parts.dynamic_config.configs.get((RESOURCE_TOPIC, name), {})
    return describe.describe_topic(parts.dynamic_config, overrides, keys)


def _group(parts: Parts, name: str, keys: Sequence[str] | None) -> list[describe.Entry]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return describe.describe_group(parts.dynamic_config, name, keys)


def _client_metrics(parts: Parts, name: str, keys: Sequence[str] | None) -> list[describe.Entry]:
    if not name:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
        )
    overrides = parts.dynamic_config.configs.get((RESOURCE_CLIENT_METRICS, name), {})
    return describe.describe_client_metrics(overrides, keys)


def _loggers(parts: Parts, name: str, keys: Sequence[str] | None) -> list[describe.Entry]:
    from kwire.config.loggers import levels

    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    _check_own_id(parts, name, f"Unexpected broker id, expected {parts.broker_id} ")
    return describe.describe_loggers(levels(), keys)


_DESCRIBERS = {
    RESOURCE_BROKER: _broker,
    RESOURCE_BROKER_LOGGER: _loggers,
    RESOURCE_TOPIC: _topic,
    RESOURCE_GROUP: _group,
    RESOURCE_CLIENT_METRICS: _client_metrics,
}


def _result(entry: describe.Entry, include_synonyms: bool) -> Config:
    result = m.DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.type,
        documentation=entry.documentation,
        synonyms=[],
    )
    if include_synonyms:
        result.synonyms = [
            m.DescribeConfigsResponse.DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=synonym.source
            )
            for synonym in entry.synonyms
        ]
    return result
