"""What a request has changed, as an audit log names it. Values of configs are never named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.structs import Message
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import PatternType, PermissionType
from kwire.security.audit import ACL_CHANGE, CONFIG_CHANGE, TOPIC_DELETION

CONFIG_TYPES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
SET, DELETE, APPEND, SUBTRACT = range(4)
CONFIG_OPERATIONS = {SET: "set", DELETE: "delete", APPEND: "append", SUBTRACT: "subtract"}


class Change(NamedTuple):
    """`event` is one of `kwire.security.audit`, `names` what has changed, in words."""

    event: str
    names: list[str]


def change_of(request: Message, response: Message) -> Change | None:
    """What `request` changed, by its answer; None where that is nothing that matters."""
    names: list[str]
    if isinstance(request, m.DeleteTopicsRequest):
        assert isinstance(response, m.DeleteTopicsResponse)
        event, names = TOPIC_DELETION, _topics(response)
    elif isinstance(request, m.CreateAclsRequest):
        assert isinstance(response, m.CreateAclsResponse)
        event, names = ACL_CHANGE, _created(request, response)
    elif isinstance(request, m.DeleteAclsRequest):
        assert isinstance(response, m.DeleteAclsResponse)
        event, names = ACL_CHANGE, _deleted(response)
    else:
        event, names = CONFIG_CHANGE, _configured(request, response)
    # Two filters may have found the same ACL, and the same one may be asked for twice.
    return Change(event, list(dict.fromkeys(names))) if names else None


def _topics(response: m.DeleteTopicsResponse) -> list[str]:
    return [
        topic.name or f"id {uuids.to_text(topic.topic_id)}"
        for topic in response.responses
        if not topic.error_code
    ]


Named = TypeVar("Named", bound=IntEnum)


def _name(kind: type[Named], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return str(number)


def _acl(
    permission: int,
    principal: str,
    host: str,
    operation: int,
    resource_type: int,
    pattern: int,
    name: str,
) -> str:
    return (
        f"{_name(PermissionType, permission)} {principal} from {host} "
        f"{_name(Operation, operation)} on {_name(ResourceType, resource_type)} "
        f"{_name(PatternType, pattern)} {name}"
    )


def _created(request: m.CreateAclsRequest, response: m.CreateAclsResponse) -> list[str]:
    return [
        "create "
        + _acl(
            acl.permission_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.resource_type,
            acl.resource_pattern_type,
            acl.resource_name,
        )
        for acl, result in zip(request.creations, response.results)
        if not result.error_code
    ]


def _deleted(response: m.DeleteAclsResponse) -> list[str]:
    return [
        "delete "
        + _acl(
            acl.permission_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.resource_type,
            acl.pattern_type,
            acl.resource_name,
        )
        for result in response.filter_results
        if not result.error_code
        for acl in result.matching_acls
        if not acl.error_code
    ]


def _configured(request: Message, response: Message) -> list[str]:
    if getattr(request, "validate_only", False):
        return []
    if isinstance(request, m.IncrementalAlterConfigsRequest):
        assert isinstance(response, m.IncrementalAlterConfigsResponse)
        done = _unrefused(
            (r.resource_type, r.resource_name, r.error_code) for r in response.responses
        )
        return [
            f"{CONFIG_OPERATIONS.get(config.config_operation, 'change')} {config.name} of "
            + _resource(resource.resource_type, resource.resource_name)
            for resource in request.resources
            if (resource.resource_type, resource.resource_name) in done
            for config in resource.configs
        ]
    if isinstance(request, m.AlterConfigsRequest):
        assert isinstance(response, m.AlterConfigsResponse)
        done = _unrefused(
            (r.resource_type, r.resource_name, r.error_code) for r in response.responses
        )
        return [
            f"replace all of {_resource(*resource)} by "
            + (", ".join(config.name for config in one.configs) or "nothing")
            for one in request.resources
            if (resource := (one.resource_type, one.resource_name)) in done
        ]
    if isinstance(request, m.AlterClientQuotasRequest):
        assert isinstance(response, m.AlterClientQuotasResponse)
        entities = {_entity(answer.entity) for answer in response.entries if not answer.error_code}
        return [
            f"{'delete' if op.remove else 'set'} {op.key} of {_entity(entry.entity)}"
            for entry in request.entries
            if _entity(entry.entity) in entities
            for op in entry.ops
        ]
    if isinstance(request, m.AlterUserScramCredentialsRequest):
        assert isinstance(response, m.AlterUserScramCredentialsResponse)
        users = [result.user for result in response.results if not result.error_code]
        return [f"credentials of user {user}" for user in users]
    return []


class _EntityPart(Protocol):
    entity_type: str
    entity_name: str | None


def _entity(parts: Sequence[_EntityPart]) -> str:
    """Parts of one type: the last counts, as for the controller."""
    names = {part.entity_type: part.entity_name for part in parts}
    return ", ".join(
        f"{kind} {'(default)' if names[kind] is None else names[kind]}" for kind in sorted(names)
    )


def _resource(resource_type: int, name: str) -> str:
    return f"{CONFIG_TYPES.get(resource_type, str(resource_type))} {name or '(default)'}"


def _unrefused(results: Iterable[tuple[int, str, int]]) -> set[tuple[int, str]]:
    return {(kind, name) for kind, name, code in results if not code}
