"""What a broker does with IncrementalAlterConfigs and AlterConfigs before the controller does.

Malformed resources are answered here; a broker's own settings are checked here, because only the
broker knows what it was started with; loggers are changed here, they are in no metadata. The rest
goes to the controller, and the answers are put together in the order of the request.
Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from kwire.api.shared.forwarding import forward
from kwire.config.broker_config import definition_of
from kwire.config.dynamic import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kwire.config.validate import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    apply_broker_operation,
)
from kwire.config.validate_broker import validate_broker_configs
from kwire.config.values import to_text
from kwire.kraft.controller.loggers import alter_loggers
from kwire.kraft.controller.results import put_error
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Request
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Denied, Requires
from kwire.server.context import RequestContext

ALTER_TOPICS = Requires(
    Operation.ALTER_CONFIGS,
    ResourceType.TOPIC,
    "resources[].resource_name",
    denied=Denied.ENTRY,
    checked=Checked.CONTROLLER,
    note="resources that are topics",
)
ALTER_GROUPS = Requires(
    Operation.ALTER_CONFIGS,
    ResourceType.GROUP,
    "resources[].resource_name",
    denied=Denied.ENTRY,
    checked=Checked.CONTROLLER,
    note="resources that are groups",
)
ALTER_BROKERS = Requires(
    Operation.ALTER_CONFIGS,
    ResourceType.CLUSTER,
    denied=Denied.ENTRY,
    note="brokers",
)
ALTER_SUBSCRIPTIONS = ALTER_BROKERS._replace(checked=Checked.CONTROLLER, note="client metrics")
ALTER_LOGGERS = ALTER_BROKERS._replace(
    note="resources that are loggers; CLUSTER_ACTION where a controller is asked"
)

_OPERATIONS = (SET, DELETE, APPEND, SUBTRACT)
_FORWARDED = (RESOURCE_TOPIC, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_BROKER)


class Resource(Protocol):
    """A resource of a request of either API."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


ResourceT = TypeVar("ResourceT", bound=Resource)
ResponseT = TypeVar("ResponseT", "m.AlterConfigsResponse", "m.IncrementalAlterConfigsResponse")
IncrementalResource: TypeAlias = "m.IncrementalAlterConfigsRequest.AlterConfigsResource"
ReplacingResource: TypeAlias = "m.AlterConfigsRequest.AlterConfigsResource"


def alter(
    context: RequestContext,
    request: Request[ResponseT],
    resources: Sequence[ResourceT],
    check: Callable[[ResourceT], bool],
    answer: type[ResponseT],
) -> Answer[ResponseT]:
    """Answer `request`, which names `resources`. `check` says whether the controller is to see one
    of them, and raises the KafkaError of one that is refused."""
    results = [
        answer.AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        for resource in resources
    ]
    counts: dict[tuple[int, str], int] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        counts[key] = counts.get(key, 0) + 1
    remaining: dict[int, ResourceT] = {}
    for position, resource in enumerate(resources):
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise _invalid("Each resource must appear at most once.")
            if check(resource):
                remaining[position] = resource
        except KafkaError as error:
            # Of a right that the broker itself misses, Kafka tells the code alone.
            put_error(results[position], error, generic_text=False)
    if not remaining:
        return answer(responses=results)

    def join(done: Pending[ResponseT]) -> ResponseT:
        forwarded = done.result()
        answered = {(each.resource_type, each.resource_name): each for each in forwarded.responses}
        for position, resource in remaining.items():
            found = answered.get((resource.resource_type, resource.resource_name))
            if found is None:
                found = answer.AlterConfigsResourceResponse(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR),
                )
            results[position] = found
        return answer(responses=results, throttle_time_ms=forwarded.throttle_time_ms)

    sent = forward(context, request.copy(resources=list(remaining.values())))
    return after(sent, join)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_shape(names: Sequence[str], nulls: Sequence[str]) -> None:
    """`nulls` are the names of those configs that have no value and need one."""
    if len(set(names)) != len(names):
        raise _invalid("Error due to duplicate config keys")
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _check_kind(resource: Resource) -> None:
    if resource.resource_type not in _FORWARDED:
        raise _invalid(f"Unknown resource type {resource.resource_type}")


def check_incremental(
    context: RequestContext, resource: IncrementalResource, validate_only: bool
) -> bool:
    """What `alter` checks for IncrementalAlterConfigs."""
    configs = resource.configs
    _check_shape(
        [config.name for config in configs],
        [x.name for x in configs if x.value is None and x.config_operation != DELETE],
    )
    name = resource.resource_name
    if resource.resource_type == RESOURCE_BROKER_LOGGER:
        _check_right(context, ALTER_LOGGERS)
        alter_loggers(context.parts.broker_id, resource, validate_only)
        return False
    _check_kind(resource)
    if resource.resource_type == RESOURCE_BROKER:
        _check_right(context, ALTER_BROKERS)
        _check_broker_name(context, name)
        _check_broker(context, name, _incremental_values(context, resource))
    return True


def check_replacing(context: RequestContext, resource: ReplacingResource) -> bool:
    """What `alter` checks for AlterConfigs."""
    configs = resource.configs
    _check_shape(
        [config.name for config in configs],
        [config.name for config in configs if config.value is None],
    )
    _check_kind(resource)
    if resource.resource_type == RESOURCE_BROKER:
        _check_right(context, ALTER_BROKERS)
        _check_broker_name(context, resource.resource_name)
        values = {config.name: config.value for config in configs if config.value is not None}
        _check_broker(context, resource.resource_name, values)
    return True


def _check_right(context: RequestContext, requirement: Requires) -> None:
    if not context.allows(requirement):
        raise KafkaError(requirement.refusal)


def _check_broker_name(context: RequestContext, name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if broker_id != context.parts.broker_id:
        raise _invalid(
            f"Unexpected broker id, expected {context.parts.broker_id}, but received {name}"
        )


def _incremental_values(context: RequestContext, resource: IncrementalResource) -> dict[str, str]:
    """The broker's settings of this level as they would be afterwards.

    Without those that count as not set: they would stand in the way of every change.
    """
    values = context.parts.dynamic_config.usable(per_broker=bool(resource.resource_name))
    for config in resource.configs:
        operation = config.config_operation
        if operation not in _OPERATIONS:
            raise _invalid(f"Unknown operations type {operation}")
        current = values.get(config.name)
        if current is None and operation in (APPEND, SUBTRACT):
            definition = definition_of(config.name)
            current = None if definition is None else to_text(definition.default)
        value = apply_broker_operation(config.name, operation, config.value, current)
        if value is None:
            values.pop(config.name, None)
        else:
            values[config.name] = value
    return values


def _check_broker(context: RequestContext, name: str, values: dict[str, str]) -> None:
    validate_broker_configs(values, context.parts.dynamic_config, per_broker=bool(name))
