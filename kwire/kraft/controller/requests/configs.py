"""IncrementalAlterConfigs and AlterConfigs.

All configs of a resource are altered or none of them; resources do not touch each other. What may
be set is decided by the injected rules (kwire/config); the checks that need the metadata are here:
that the resource exists, and what eligible leader replicas forbid (KIP-966). A change of
min.insync.replicas is followed by a ClearElrRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from kwire.config.values import operands
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.loggers import alter_loggers
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    MIN_ISR,
    TOPIC,
    ControllerState,
)
from kwire.kraft.images.settings import config_record
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_TYPE_NAMES = {
    TOPIC: "TOPIC",
    BROKER: "BROKER",
    BROKER_LOGGER: "BROKER_LOGGER",
    CLIENT_METRICS: "CLIENT_METRICS",
    GROUP: "GROUP",
}
MAX_VALUE_LENGTH = 32767
CORDONED = "cordoned.log.dirs"


def incremental_alter_configs(
    state: ControllerState,
    request: m.IncrementalAlterConfigsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.IncrementalAlterConfigsResponse]:
    """Answer an IncrementalAlterConfigsRequest (versions 0-1)."""
    answer = m.IncrementalAlterConfigsResponse

    def alter_own_loggers(
        resource: m.IncrementalAlterConfigsRequest.AlterConfigsResource,
    ) -> None:
        if not context.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        alter_loggers(state.config.node_id, resource, request.validate_only)

    records, responses = _alter(
        state,
        request.resources,
        context,
        answer.AlterConfigsResourceResponse,
        _incremental,
        alter_own_loggers,
    )
    return ([] if request.validate_only else records), answer(responses=responses)


def alter_configs(
    state: ControllerState, request: m.AlterConfigsRequest, context: ControllerContext, now_ms: int
) -> Result[m.AlterConfigsResponse]:
    """Answer an AlterConfigsRequest (versions 0-2): what is not named is deleted."""
    answer = m.AlterConfigsResponse
    records, responses = _alter(
        state, request.resources, context, answer.AlterConfigsResourceResponse, _replacing
    )
    return ([] if request.validate_only else records), answer(responses=responses)


def records_for_new_topic(state: ControllerState, name: str, values: Mapping[str, str]) -> Records:
    """ConfigRecords of a topic about to be created. Raises KafkaError(INVALID_CONFIG)."""
    if not values:
        return []
    changes: dict[str, str | None] = dict(values)
    _check(state, TOPIC, name, changes, exists=False)
    records: Records = [(config_record(TOPIC, name, key, values[key]), 0) for key in values]
    return records + _clear_elr(state, TOPIC, name, changes)


class Resource(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


class _Outcome(Protocol):
    error_code: int
    error_message: str | None


R = TypeVar("R", bound=Resource)
T = TypeVar("T", bound=_Outcome)


T_co = TypeVar("T_co", covariant=True)


class _OutcomeClass(Protocol[T_co]):
    def __call__(
        self, *, resource_type: int, resource_name: str, error_message: str | None
    ) -> T_co: ...


def _alter(
    state: ControllerState,
    resources: list[R],
    context: ControllerContext,
    outcome: _OutcomeClass[T],
    changes_of: Callable[[ControllerState, R], dict[str, str | None]],
    alter_own_loggers: Callable[[R], None] | None = None,
) -> tuple[Records, list[T]]:
    counts: dict[tuple[int, str], int] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        counts[key] = counts.get(key, 0) + 1
    records: Records = []
    responses: list[T] = []
    doubled: dict[tuple[int, str], None] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        if counts[key] > 1 and key in doubled:
            continue
        result = outcome(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )
        try:
            if resource.resource_type not in _TYPE_NAMES:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    f"Unknown resource type {resource.resource_type}.",
                )
            if counts[key] > 1:
                doubled[key] = None
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            if resource.resource_type == BROKER_LOGGER and alter_own_loggers is not None:
                alter_own_loggers(resource)
                responses.append(result)
                continue
            _authorize(resource, context)
            changes = changes_of(state, resource)
            if not context.forwarded:
                _check_cordoned_directly(state, resource, changes)
            _check(state, resource.resource_type, resource.resource_name, changes, exists=True)
            records.extend(_records(state, resource, changes))
        except KafkaError as error:
            put_error(result, error)
        responses.append(result)
    return records, responses


def _authorize(resource: Resource, context: ControllerContext) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if kind in (BROKER, CLIENT_METRICS):
        if not context.authorize(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif kind == TOPIC:
        if not context.authorize(Operation.ALTER_CONFIGS, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif kind == GROUP:
        if not context.authorize(Operation.ALTER_CONFIGS, ResourceType.GROUP, name):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected resource type {_TYPE_NAMES[kind]}."
        )


def _incremental(
    state: ControllerState, resource: m.IncrementalAlterConfigsRequest.AlterConfigsResource
) -> dict[str, str | None]:
    kind = resource.resource_type
    current = state.image.config(kind, resource.resource_name)
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        key, operation = config.name, config.config_operation
        if operation == SET:
            changes[key] = config.value
        elif operation == DELETE:
            changes[key] = None
        elif operation in (APPEND, SUBTRACT):
            changes[key] = _edited(state, kind, key, current.get(key), operation, config.value)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return changes


def _edited(
    state: ControllerState,
    kind: int,
    key: str,
    value: str | None,
    operation: int,
    edit: str | None,
) -> str:
    if not state.config.rules.is_list(kind, key):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {_OPERATIONS[operation]} to key {key} because its type is not LIST.",
        )
    if value is None:
        value = state.config.rules.default(kind, key)
    parts = [part for part in (value or "").split(",") if part]
    assert edit is not None, f"nothing to {_OPERATIONS[operation]}"
    for part in operands(edit):
        if operation == APPEND:
            if part not in parts:
                parts.append(part)
        elif part in parts:
            parts.remove(part)
    return ",".join(parts)


def _replacing(
    state: ControllerState, resource: m.AlterConfigsRequest.AlterConfigsResource
) -> dict[str, str | None]:
    changes: dict[str, str | None] = {c.name: c.value for c in resource.configs}
    for key in sorted(state.image.config(resource.resource_type, resource.resource_name)):
        changes.setdefault(key, None)
    return changes


def _check(
    state: ControllerState,
    kind: int,
    name: str,
    changes: Mapping[str, str | None],
    exists: bool,
) -> None:
    old = state.image.config(kind, name)
    new = dict(old)
    for key, value in changes.items():
        _check_one(state, kind, name, key, value)
        if value is None:
            new.pop(key, None)
        else:
            new[key] = value
    state.config.rules.validate(kind, name, new, old)
    if exists:
        _check_exists(state, kind, name)


def _check_one(state: ControllerState, kind: int, name: str, key: str, value: str | None) -> None:
    if kind == BROKER and key == MIN_ISR and state.elr_enabled:
        if name:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            )
        if not name and value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            )
    if kind == BROKER and key == CORDONED and not state.gates.cordoned_log_dirs:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "The cordoned.log.dirs configuration value cannot be set because it requires "
            "metadata.version >= 4.3-IV0",
        )
    if value is not None and len(value) > MAX_VALUE_LENGTH:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size "
            f"of {MAX_VALUE_LENGTH} bytes.",
        )


def _check_cordoned_directly(
    state: ControllerState, resource: Resource, changes: Mapping[str, str | None]
) -> None:
    """A controller cannot know a broker's directories: asked directly it only takes some back."""
    value = (changes.get(CORDONED) or "").strip()
    if resource.resource_type != BROKER or not value:
        return
    current = state.image.config(BROKER, resource.resource_name).get(CORDONED, "")
    known = [part.strip() for part in current.split(",")] if current else []
    if any(part.strip() not in known for part in value.split(",")):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "When updating cordoned.log.dirs via controllers,  the new value must be a subset of "
            "the current configuration value.",
        )


def _check_exists(state: ControllerState, kind: int, name: str) -> None:
    if kind == TOPIC:
        if name not in state.image.topics.by_name:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
    elif kind == BROKER and name:
        node_id = int(name)
        if node_id not in state.image.brokers and node_id not in state.image.controllers:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found."
            )


def _records(
    state: ControllerState, resource: Resource, changes: Mapping[str, str | None]
) -> Records:
    kind, name = resource.resource_type, resource.resource_name
    current = state.image.config(kind, name)
    # A broker's configs are written again even when equal: brokers reload them then.
    changed = {
        key: value for key, value in changes.items() if kind == BROKER or current.get(key) != value
    }
    records: Records = [
        (config_record(kind, name, key, value), 0) for key, value in changed.items()
    ]
    return records + _clear_elr(state, kind, name, changed)


def _clear_elr(
    state: ControllerState, kind: int, name: str, changes: Mapping[str, str | None]
) -> Records:
    if MIN_ISR not in changes or not state.elr_enabled:
        return []
    topic_name = name if kind == TOPIC else ""
    return [(m.ClearElrRecord(topic_name=topic_name), 0)]
