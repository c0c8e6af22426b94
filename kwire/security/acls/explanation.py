"""Which rule decides, in the order in which Kafka's StandardAuthorizer comes to them.

The ACLs are looked at one by one, without the index: by type, names last to first, literal before
prefixed, then by operation, principal, host and permission; those of `*` at the end. The first
denial that fits decides, else the last permission (measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kwire.security.acl import Operation
from kwire.security.acls.binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    PermissionType,
)
from kwire.security.acls.hosts import address_text
from kwire.security.acls.index import EVERYBODY, Rule, fits_host, rule_of

IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operation -> those whose permission allows it too."""


class Decision(NamedTuple):
    """`rule` decides; without one the reason says what does. `covering` is how many ACLs are about
    the resource, `fitting` those of them that are about the client."""

    is_allowed: bool
    reason: str
    rule: AclBinding | None = None
    covering: int = 0
    fitting: tuple[AclBinding, ...] = ()


def explain(
    acls: Iterable[AclBinding],
    principal: str,
    client_host: str,
    operation: int,
    resource_type: int,
    resource_name: str,
    *,
    super_users: Collection[str] = (),
    allow_everyone: bool = False,
) -> Decision:
    """Whether a client may do an operation on a resource, and by which rule."""
    if principal in super_users:
        return Decision(True, "a super user may do everything")
    address = address_text(client_host)
    covering = sorted(
        (acl for acl in acls if _covers(rule_of(acl), resource_type, resource_name)),
        key=lambda acl: _order(acl, resource_name),
    )
    if not covering:
        if allow_everyone:
            return Decision(True, "no ACL covers the resource, and then everybody is allowed")
        return Decision(False, "no ACL covers the resource, and then only super users are allowed")
    fitting = tuple(acl for acl in covering if _is_about(rule_of(acl), principal, address))
    count = len(covering)
    same = (operation, Operation.ALL)
    for acl in fitting:
        if acl.permission_type != PermissionType.ALLOW and acl.operation in same:
            return Decision(False, "this ACL denies it", acl, count, fitting)
    found = Decision(False, "no ACL of the resource allows it", None, count, fitting)
    enough = (*same, *IMPLIED_BY.get(Operation(operation), ()))
    for acl in fitting:
        allows = acl.permission_type == PermissionType.ALLOW and rule_of(acl).bits
        if allows and acl.operation in enough:
            reason = "this ACL allows it"
            if acl.operation not in same:
                implied, by = Operation(operation).name, Operation(acl.operation).name
                reason += f": {by} implies {implied}"
            found = Decision(True, reason, acl, count, fitting)
    return found


def _covers(rule: Rule, resource_type: int, name: str) -> bool:
    kind, pattern = rule.pattern
    if kind != resource_type:
        return False
    if rule.is_prefix:
        return name.startswith(pattern)
    # Kafka lets `*` not cover names that begin with it.
    return pattern == name or (pattern == WILDCARD and not name.startswith(WILDCARD))


def _is_about(rule: Rule, principal: str, address: str) -> bool:
    return rule.principal in (principal, WILDCARD_PRINCIPAL, EVERYBODY) and fits_host(rule, address)


def _order(acl: AclBinding, asked: str) -> tuple[bool, list[int], int, int, str, str, int]:
    # Kafka compares names backwards, a longer one before its own beginning.
    return (
        acl.resource_name == WILDCARD != asked,
        [*(-ord(letter) for letter in acl.resource_name), 1],
        acl.pattern_type,
        acl.operation,
        acl.principal,
        acl.host,
        acl.permission_type,
    )
