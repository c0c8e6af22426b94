"""What a broker does with IncrementalAlterConfigs and AlterConfigs before the controller does.

Malformed resources are answered here; a broker's own settings are checked here, because only the
broker knows what it was started with; loggers are changed here, they are in no metadata. The rest
goes to the controller, and the answers are put together in the order of the request.
Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

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
from kwire.server.authorization import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME
from kwire.server.context import RequestContext

_OPERATIONS = (SET, DELETE, APPEND, SUBTRACT)
_FORWARDED = (RESOURCE_TOPIC, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_BROKER)

Request: TypeAlias = "m.AlterConfigsRequest | m.IncrementalAlterConfigsRequest"
Resource: TypeAlias = (
    "m.AlterConfigsRequest.AlterConfigsResource"
    " | m.IncrementalAlterConfigsRequest.AlterConfigsResource"
)
Result: TypeAlias = Any
ResponseT = TypeVar("ResponseT", "m.AlterConfigsResponse", "m.IncrementalAlterConfigsResponse")
Check = Callable[[RequestContext, Any, bool], bool]
"""(context, resource, validate only) -> whether the controller is to see the resource."""


def alter(
    context: RequestContext, request: Request, answer: type[ResponseT], check: Check
) -> Answer[ResponseT]:
    """Answer `request` (either API), whose resources `check` looks at first."""
    local: dict[int, Result] = {}
    counts: dict[tuple[int, str], int] = {}
    resources: Sequence[Resource] = request.resources
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        counts[key] = counts.get(key, 0) + 1
    remaining = []
    for position, resource in enumerate(resources):
        result = answer.AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise _invalid("Each resource must appear at most once.")
            if check(context, resource, request.validate_only):
                remaining.append(resource)
                continue
        except KafkaError as error:
            put_error(result, error)
        local[position] = result
    if not remaining:
        return answer(responses=[local[i] for i in range(len(resources))])
    sent: Pending[ResponseT] = forward(context, request.copy(resources=remaining), answer)  # type: ignore[arg-type]
    return after(sent, lambda done: _joined(request, answer, local, done.result()))


def _joined(
    request: Request, answer: type[ResponseT], local: dict[int, Result], forwarded: ResponseT
) -> ResponseT:
    answered = {
        (result.resource_type, result.resource_name): result for result in forwarded.responses
    }
    responses = []
    resources: Sequence[Resource] = request.resources
    for position, resource in enumerate(resources):
        result = local.get(position)
        if result is None:
            result = answered.get((resource.resource_type, resource.resource_name))
        if result is None:
            result = answer.AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR),
            )
        responses.append(result)
    return answer(responses=responses, throttle_time_ms=forwarded.throttle_time_ms)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_shape(resource: Any, names_only: bool) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise _invalid("Error due to duplicate config keys")
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and (names_only or config.config_operation != DELETE)
    ]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def check_incremental(context: RequestContext, resource: Any, validate_only: bool) -> bool:
    """`Check` of IncrementalAlterConfigs."""
    _check_shape(resource, names_only=False)
    kind = resource.resource_type
    if kind == RESOURCE_BROKER_LOGGER:
        authorized = context.authorize(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
        alter_loggers(context.node.broker_id, resource, authorized, validate_only)
        return False
    if kind not in _FORWARDED:
        raise _invalid(f"Unknown resource type {kind}")
    if kind == RESOURCE_BROKER:
        _check_broker_name(context, resource.resource_name)
        _check_broker(context, resource.resource_name, _incremental_values(context, resource))
    return True


def check_replacing(context: RequestContext, resource: Any, validate_only: bool) -> bool:
    """`Check` of AlterConfigs."""
    _check_shape(resource, names_only=True)
    kind = resource.resource_type
    if kind not in _FORWARDED:
        raise _invalid(f"Unknown resource type {kind}")
    if kind == RESOURCE_BROKER:
        _check_broker_name(context, resource.resource_name)
        _check_broker(
            context,
            resource.resource_name,
            {config.name: config.value for config in resource.configs},
        )
    return True


def _check_broker_name(context: RequestContext, name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if broker_id != context.node.broker_id:
        raise _invalid(
            f"Unexpected broker id, expected {context.node.broker_id}, but received {name}"
        )


def _incremental_values(context: RequestContext, resource: Any) -> dict[str, str]:
    """The broker's settings of this level as they would be afterwards.

    Without those that count as not set: they would stand in the way of every change.
    """
    values = context.node.dynamic_config.usable(per_broker=bool(resource.resource_name))
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
    validate_broker_configs(values, context.node.dynamic_config, per_broker=bool(name))
