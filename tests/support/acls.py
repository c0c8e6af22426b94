"""What tests of rights share: ACLs, clients with a name, a model of the authorizer.

The model decides as slowly and plainly as it can: every ACL is looked at for every question.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import AclBinding, PatternType, PermissionType
from kwire.testing.cluster.in_thread import NodeInThread
from tests.support.wire import WireClient

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


@dataclass(frozen=True)
class Client:
    """Who asks, and from where."""

    principal: str = "User:alice"
    client_host: str = "/127.0.0.1"


def acl(
    principal: str,
    operation: Operation,
    name: str = "orders",
    *,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    permission: PermissionType = PermissionType.ALLOW,
    host: str = "*",
) -> AclBinding:
    """One ACL; of a topic, by its name, that allows, where nothing else is said."""
    return AclBinding(kind, name, pattern, principal, host, operation, permission)


def become(node: NodeInThread, client: WireClient, principal: str) -> None:
    """A connection of a node gets the name that authentication would find out."""

    async def rename() -> None:
        port = client.socket.getsockname()[1]
        for listener in node.node.listeners.bound.values():
            for connection in listener.connections:
                if connection.client_port == port:
                    connection.set_principal(principal, True)
                    return
        raise AssertionError(f"no connection from port {port}")

    node.run(rename())


# -- the model


def covers(rule: AclBinding, kind: int, name: str) -> bool:
    """Whether an ACL is about a resource."""
    if rule.resource_type != kind:
        return False
    if rule.pattern_type == PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    if rule.resource_name == "*" and not name.startswith("*"):
        return True
    return rule.resource_name == name


def is_about(rule: AclBinding, client: Client) -> bool:
    """Whether an ACL is about a client."""
    if rule.principal not in (client.principal, "User:*"):
        return False
    host = client.client_host.removeprefix("/")
    if "/" not in rule.host:
        return rule.host in (host, "*")
    network = ipaddress.ip_network(rule.host, strict=False)
    return ipaddress.ip_address(host) in network


def model_allows(
    rules: Iterable[AclBinding],
    client: Client,
    operation: Operation,
    kind: int,
    name: str,
    *,
    allow_everyone: bool = False,
) -> bool:
    """What StandardAuthorizer decides, by the words of KIP-11, KIP-290 and KIP-801."""
    covering = [rule for rule in rules if covers(rule, kind, name)]
    if not covering:
        return allow_everyone
    fitting = [rule for rule in covering if is_about(rule, client)]
    same = (operation, Operation.ALL)
    if any(r.permission_type == PermissionType.DENY and r.operation in same for r in fitting):
        return False
    enough = (*same, *IMPLIED_BY.get(operation, ()))
    return any(r.permission_type == PermissionType.ALLOW and r.operation in enough for r in fitting)


def model_allows_some(
    rules: Iterable[AclBinding], client: Client, operation: Operation, kind: int
) -> bool:
    """`authorizeByResourceType` of KIP-679: is there a name of which nothing is denied?

    A literal permission counts where neither its name nor a prefix of it is denied, a prefixed one
    where no prefix of it is.
    """
    rules = [rule for rule in rules if rule.resource_type == kind]
    if model_allows(rules, client, operation, kind, "hardcode"):
        return True
    same = (operation, Operation.ALL)
    fitting = [rule for rule in rules if is_about(rule, client) and rule.operation in same]
    denials = [rule for rule in fitting if rule.permission_type == PermissionType.DENY]
    for denial in denials:
        if denial.resource_name == "*" and denial.pattern_type == PatternType.LITERAL:
            return False
    prefixes = [r.resource_name for r in denials if r.pattern_type == PatternType.PREFIXED]
    literals = [r.resource_name for r in denials if r.pattern_type == PatternType.LITERAL]
    for rule in fitting:
        if rule.permission_type != PermissionType.ALLOW:
            continue
        is_literal = rule.pattern_type == PatternType.LITERAL
        if is_literal and rule.resource_name == "*":
            return True
        if is_literal and rule.resource_name in literals:
            continue
        if not any(rule.resource_name.startswith(prefix) for prefix in prefixes):
            return True
    return False
