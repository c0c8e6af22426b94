"""One ACL, and the filters by which DescribeAcls and DeleteAcls name some.

Source: AclBinding, PatternType and AclPermissionType of Apache Kafka 4.4; KIP-140, KIP-290.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

WILDCARD = "*"
"""A host or a literal resource name: every one."""
WILDCARD_PRINCIPAL = "User:*"
"""Every principal, of whatever type."""


class PatternType(IntEnum):
    """How the name of a resource in an ACL is meant. UNKNOWN, ANY and MATCH stand in filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """What an ACL does. UNKNOWN and ANY stand in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """One ACL; the numbers are Kafka's (ResourceType, PatternType, AclOperation, ...), and those
    of a record that cannot be used."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclFilter(Protocol):
    """What DescribeAcls and DeleteAcls ask for."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def matches_filter(wanted: AclFilter, acl: AclBinding) -> bool:
    """Whether an ACL fits a filter of DescribeAcls or DeleteAcls (both have the same fields)."""
    if wanted.resource_type_filter not in (1, acl.resource_type):
        return False
    if not _matches_pattern(wanted.resource_name_filter, wanted.pattern_type_filter, acl):
        return False
    if wanted.principal_filter is not None and wanted.principal_filter != acl.principal:
        return False
    if wanted.host_filter is not None and wanted.host_filter != acl.host:
        return False
    if wanted.operation not in (1, acl.operation):
        return False
    return wanted.permission_type in (1, acl.permission_type)


def _matches_pattern(name: str | None, pattern_type: int, acl: AclBinding) -> bool:
    any_type = (PatternType.ANY, PatternType.MATCH)
    if pattern_type not in (*any_type, acl.pattern_type):
        return False
    if name is None:
        return True
    if pattern_type != PatternType.MATCH:
        return name == acl.resource_name
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)
