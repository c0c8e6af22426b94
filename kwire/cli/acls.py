"""`kwire acl`: why, list, add, remove. On kwire and on Apache Kafka.

`why` fetches the ACLs of a resource by DescribeAcls and decides by the code that a broker decides
by; who is a super user the brokers' configs say, where they tell it, as those of kwire do.
"""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.cli import output
from kwire.cli.client import Client
from kwire.cli.options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, CommandConfig
from kwire.cli.output import Json
from kwire.cli.verbs import Verbs
from kwire.client.acl_requests import (
    AclFilter,
    create_request,
    delete_request,
    describe_request,
    described,
)
from kwire.client.errors import ClientError, check
from kwire.config import authorizer as settings
from kwire.config.errors import ConfigError
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls import text
from kwire.security.acls.binding import (
    WILDCARD,
    AclBinding,
    PatternType,
    PermissionType,
)
from kwire.security.acls.explanation import Decision, explain
from kwire.security.acls.hosts import RANGE_MARK, address_number, address_text

EXIT_DENIED = 1
BROKER_RESOURCE = 4
COLUMNS = ("principal", "permission", "operation", "resource", "pattern", "host")

acl_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Tell why somebody may do something; list, add, remove ACLs.",
)
User = Annotated[str, typer.Argument(help="A principal: alice, or User:alice.")]
OperationName = Annotated[str, typer.Argument(help="read, write, describe-configs, all, ...")]
Resource = Annotated[
    str, typer.Argument(help="topic:NAME, group:NAME, transactional-id:NAME, cluster, ...")
]
Prefix = Annotated[bool, typer.Option("--prefix", help="All names that begin with NAME.")]
Deny = Annotated[bool, typer.Option("--deny", help="Forbid it, whatever else allows it.")]
Host = Annotated[
    str, typer.Option("--host", help="An address, a range (CIDR), or * for all.", show_default=True)
]


@acl_app.command("why")
def acl_why(
    user: User,
    operation: OperationName,
    resource: Resource,
    host: Annotated[
        str | None, typer.Argument(help="The client's address; ACLs of single hosts need it.")
    ] = None,
    super_users: Annotated[
        str | None,
        typer.Option("--super-users", help="As the brokers have it."),
    ] = None,
    allow_everyone: Annotated[
        bool | None,
        typer.Option(
            "--allow-everyone/--deny-everyone",
            help="What nobody has an ACL of is for all, or none.",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Which rule decides whether USER may do OPERATION on RESOURCE. Exit status 1 when denied."""
    principal = text.principal_of(user)
    asked = _operation(operation)
    kind, name = _resource(resource)
    if asked is Operation.ALL:
        raise typer.BadParameter("all: ask for one operation")
    if host is not None and address_number(host) is None:
        raise typer.BadParameter(f"{host}: not an address")
    with Client(bootstrap, command_config=command_config) as client:
        acls = _described(client, resource_type=kind, name=name)
        texts, untold = _authorizer_settings(client)
    given = {
        settings.SUPER_USERS: super_users,
        settings.ALLOW_EVERYONE: None if allow_everyone is None else str(allow_everyone),
    }
    texts |= {key: value for key, value in given.items() if value is not None}
    decision = explain(
        acls,
        principal,
        host or "",
        asked,
        kind,
        name,
        super_users=_super_users(texts),
        allow_everyone=settings.allow_everyone(texts),
    )
    others = 0
    if host is None:
        others = sum(
            acl.host != WILDCARD and acl.principal in (principal, "User:*") for acl in acls
        )
    who = f"{principal} may {'' if decision.is_allowed else 'not '}"
    line = f"{who}{text.operation_text(asked)} {text.resource_text(kind, name)}"
    if host is not None:
        line += f" from {address_text(host)}"
    if as_json:
        output.say_json(_why_json(principal, asked, kind, name, host, decision))
    else:
        _say_why(line, decision, others, [key for key in untold if key not in texts])
    if not decision.is_allowed:
        raise typer.Exit(EXIT_DENIED)


def _say_why(line: str, decision: Decision, others: int, untold: list[str]) -> None:
    output.say(f"{'allowed' if decision.is_allowed else 'denied'}: {output.printable(line)}")
    if decision.rule is None:
        output.say(f"  {decision.reason}")
    else:
        output.say(f"  {decision.reason}: {output.printable(text.acl_text(decision.rule))}")
    output.say(
        f"  {decision.covering} ACLs cover the resource, {len(decision.fitting)} of them fit"
    )
    for acl in decision.fitting:
        if acl != decision.rule:
            output.say(f"    {output.printable(text.acl_text(acl))}")
    if others:
        output.say(f"  {others} ACLs of single hosts were left out: give the client's address")
    if untold:
        output.say(f"  the brokers do not tell {' and '.join(untold)}: see kwire acl why --help")


def _why_json(
    principal: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
    host: str | None,
    decision: Decision,
) -> dict[str, Json]:
    rule = decision.rule
    return {
        "principal": principal,
        "operation": text.operation_text(operation),
        "resource": text.resource_text(kind, name),
        "host": host,
        "allowed": decision.is_allowed,
        "reason": decision.reason,
        "rule": None if rule is None else output.as_object(COLUMNS, _row(rule)),
        "fitting": [output.as_object(COLUMNS, _row(acl)) for acl in decision.fitting],
    }


@acl_app.command("list")
def acl_list(
    user: Annotated[
        str | None, typer.Option("--user", "--principal", help="Only what names USER.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option("--resource", help="Only what covers this resource.")
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """The ACLs of the cluster."""
    kind: ResourceType = ResourceType.ANY
    name = None
    if resource is not None:
        kind, name = _resource(resource)
    principal = None if user is None else text.principal_of(user)
    with Client(bootstrap, command_config=command_config) as client:
        acls = _described(client, resource_type=kind, name=name, principal=principal)
    output.table(COLUMNS, [_row(acl) for acl in sorted(acls, key=_by_name)], as_json=as_json)


@acl_app.command("add")
def acl_add(
    user: User,
    operation: OperationName,
    resource: Resource,
    prefix: Prefix = False,
    deny: Deny = False,
    host: Host = WILDCARD,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Let USER do OPERATION on RESOURCE, or forbid it with --deny."""
    acl = _acl(user, operation, resource, prefix, deny, host)
    with Client(bootstrap, command_config=command_config) as client:
        result = client.call(create_request([acl])).results[0]
    check(result.error_code, text.acl_text(acl), result.error_message)
    output.say(f"added {output.printable(text.acl_text(acl))}")


@acl_app.command("remove")
def acl_remove(
    user: User,
    operation: OperationName,
    resource: Resource,
    prefix: Prefix = False,
    deny: Deny = False,
    host: Host = WILDCARD,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Remove what `add` with the same arguments added."""
    acl = _acl(user, operation, resource, prefix, deny, host)
    with Client(bootstrap, command_config=command_config) as client:
        result = client.call(delete_request(AclFilter(*acl))).filter_results[0]
    check(result.error_code, text.acl_text(acl), result.error_message)
    if not result.matching_acls:
        raise ClientError(f"there is no such ACL: {text.acl_text(acl)}")
    output.say(f"removed {output.printable(text.acl_text(acl))}")


def _acl(
    user: str, operation: str, resource: str, prefix: bool, deny: bool, host: str
) -> AclBinding:
    kind, name = _resource(resource)
    if not host.isprintable() or (host != WILDCARD and RANGE_MARK not in host):
        if address_number(host) is None:
            raise typer.BadParameter(f"{host}: not an address")
        host = address_text(host)
    return AclBinding(
        kind,
        name,
        PatternType.PREFIXED if prefix else PatternType.LITERAL,
        text.principal_of(user),
        host,
        _operation(operation),
        PermissionType.DENY if deny else PermissionType.ALLOW,
    )


def _operation(given: str) -> Operation:
    try:
        return text.operation_of(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _resource(given: str) -> tuple[ResourceType, str]:
    try:
        return text.resource_of(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _row(acl: AclBinding) -> tuple[str, ...]:
    return (
        acl.principal,
        text.name_of(PermissionType, acl.permission_type),
        text.operation_text(acl.operation),
        text.resource_text(acl.resource_type, acl.resource_name),
        text.name_of(PatternType, acl.pattern_type),
        acl.host,
    )


def _by_name(acl: AclBinding) -> tuple[str, int, str, AclBinding]:
    return acl.principal, acl.resource_type, acl.resource_name, acl


def _described(
    client: Client,
    *,
    resource_type: int,
    name: str | None,
    principal: str | None = None,
) -> list[AclBinding]:
    """The ACLs that cover a resource; without a name all of the type."""
    pattern_type = PatternType.ANY if name is None else PatternType.MATCH
    response = client.call(
        describe_request(AclFilter(resource_type, name, pattern_type, principal))
    )
    check(response.error_code, "the ACLs", response.error_message)
    return described(response)


def _authorizer_settings(client: Client) -> tuple[dict[str, str], list[str]]:
    """(settings of the authorizer that a broker tells, names of those which it keeps to itself)."""
    broker_id = client.metadata([]).brokers[0].node_id
    shape = m.DescribeConfigsRequest
    resource = shape.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(broker_id),
        configuration_keys=[*settings.AUTHORIZER_SETTINGS, *settings.TOLD_AS],
    )
    result = client.call(shape(resources=[resource]), node_id=broker_id).results[0]
    if result.error_code:
        return {}, list(settings.AUTHORIZER_SETTINGS)
    names = [settings.TOLD_AS.get(entry.name, entry.name) for entry in result.configs]
    values = [entry.value for entry in result.configs]
    texts = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return texts, [name for name in names if name not in texts]


def _super_users(texts: dict[str, str]) -> frozenset[str]:
    try:
        return settings.super_users(texts)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
