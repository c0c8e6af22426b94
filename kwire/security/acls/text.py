"""ACLs, resources and operations as people write and read them.

topic:orders  group:readers  transactional-id:pay  delegation-token:t  user:User:bob  cluster
read  describe-configs  DESCRIBE_CONFIGS  DescribeConfigs
alice  User:alice
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.acls.binding import WILDCARD, AclBinding, PatternType, PermissionType

USER = "User:"


def principal_of(text: str) -> str:
    """A principal; a name without a type is a user's."""
    return text if ":" in text else USER + text


def operation_of(text: str) -> Operation:
    """An operation by its name; ValueError tells which there are."""
    operations = {_dashed(each.name): each for each in Operation if each > Operation.ANY}
    found = _named(operations, text)
    if found is None:
        raise ValueError(f"{text}: not an operation; accepted: {', '.join(operations)}")
    return found


def resource_of(text: str) -> tuple[ResourceType, str]:
    """A resource by its type and name; ValueError tells what is accepted."""
    kind, colon, name = text.partition(":")
    types = {_dashed(each.name): each for each in ResourceType if each > ResourceType.ANY}
    found = _named(types, kind)
    if found is ResourceType.CLUSTER and name in ("", CLUSTER_NAME):
        return found, CLUSTER_NAME
    if found is None or found is ResourceType.CLUSTER or not colon or not name:
        others = [f"{each}:NAME" for each in types if each != "cluster"]
        raise ValueError(f"{text}: not a resource; accepted: {', '.join(others)}, cluster")
    return found, name


def resource_text(resource_type: int, name: str) -> str:
    """`topic:orders`."""
    if resource_type == ResourceType.CLUSTER:
        return "cluster"
    return f"{name_of(ResourceType, resource_type)}:{name}"


def operation_text(operation: int) -> str:
    """`describe-configs`."""
    return name_of(Operation, operation)


def acl_text(acl: AclBinding) -> str:
    """An ACL in a line."""
    resource = resource_text(acl.resource_type, acl.resource_name)
    if acl.pattern_type == PatternType.PREFIXED:
        resource += "... (prefix)"
    elif acl.pattern_type != PatternType.LITERAL:
        resource += f" (pattern type {acl.pattern_type})"
    host = "" if acl.host == WILDCARD else f" from {acl.host}"
    permission = name_of(PermissionType, acl.permission_type)
    return f"{permission} {acl.principal}{host} to {operation_text(acl.operation)} {resource}"


def name_of(kind: type[IntEnum], number: int) -> str:
    """The name of a number of Kafka's, in small letters; of an unknown one what it would name."""
    try:
        return _dashed(kind(number).name)
    except ValueError:
        return f"{kind.__name__} {number}"


NamedT = TypeVar("NamedT", bound=IntEnum)


def _named(names: Mapping[str, NamedT], text: str) -> NamedT | None:
    """What is named, in any of Kafka's spellings: DescribeConfigs, DESCRIBE_CONFIGS."""
    bare = _bare(text)
    return next((each for name, each in names.items() if _bare(name) == bare), None)


def _bare(name: str) -> str:
    return _dashed(name).replace("-", "")


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")
