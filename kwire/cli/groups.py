"""`kwire group`: list, describe, alter, delete, reset-offsets."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from kwire.cli import operations, output, share_groups
from kwire.cli.client import Client
from kwire.cli.options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandConfig,
    GroupOption,
    Settings,
    Unset,
    all_named,
    changes,
    named,
)
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError, RequestFailed
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

group_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, describe, alter, reset and delete groups.",
)
GroupName = Annotated[str | None, typer.Argument(metavar="GROUP", show_default=False)]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MEMBER_COLUMNS = ("member", "client", "host")
_SHARE_COLUMNS = ("topic", "partition", "start", "lag")
_LAG_COLUMNS = ("topic", "partition", "committed", "end", "lag")


@group_app.command("list")
def group_list(
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """The groups with their kind and state."""
    with Client(bootstrap, command_config=command_config) as client:
        groups = client.ask(lambda admin: admin.groups.listed())
    rows = [(group.group_id, group.group_type, group.group_state) for group in groups]
    output.table(("group", "type", "state"), rows, as_json=as_json)


@group_app.command("describe")
def group_describe(
    name: GroupName = None,
    group: GroupOption = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """A group's members and its offsets with their lag: committed ones, or where a share group
    begins."""
    wanted = named(name, group, "group")
    with Client(bootstrap, command_config=command_config) as client:
        described = _described(client, wanted)
        shared = None if described is not None else share_groups.find(client, wanted)
        if shared is not None:
            _describe_shared(shared, share_groups.offsets(client, wanted), as_json)
            return
        committed = client.ask(lambda admin: admin.offsets.committed(wanted))
        if described is None and not committed:
            raise ClientError(f"group {wanted}: not found")
        rows = _lags(client, committed)
    members = [
        (x.member_id, x.client_id, x.client_host)
        for x in (described.members if described is not None else ())
    ]
    state = None if described is None else described.group_state
    if as_json:
        output.say_json(
            {
                "group": wanted,
                "state": state,
                "members": [output.as_object(_MEMBER_COLUMNS, row) for row in members],
                "offsets": [output.as_object(_LAG_COLUMNS, row) for row in rows],
            }
        )
        return
    if state is not None:
        output.say(f"{wanted}: {state}, {len(members)} members")
        if members:
            output.table(_MEMBER_COLUMNS, members)
            output.say("")
    output.table(_LAG_COLUMNS, rows)


def _describe_shared(
    group: m.ShareGroupDescribeResponse.DescribedGroup,
    offsets: list[tuple[str, int, int | None, int | None]],
    as_json: bool,
) -> None:
    members = [(x.member_id, x.client_id, x.client_host) for x in group.members]
    if as_json:
        output.say_json(
            {
                "group": group.group_id,
                "type": share_groups.SHARE,
                "state": group.group_state,
                "members": [output.as_object(_MEMBER_COLUMNS, row) for row in members],
                "offsets": [output.as_object(_SHARE_COLUMNS, row) for row in offsets],
            }
        )
        return
    output.say(f"{group.group_id}: share group, {group.group_state}, {len(members)} members")
    if members:
        output.table(_MEMBER_COLUMNS, members)
        output.say("")
    output.table(_SHARE_COLUMNS, offsets)


def _described(client: Client, group: str) -> m.DescribeGroupsResponse.DescribedGroup | None:
    """A classic group's description; None for a group of another kind or none."""
    try:
        return client.ask(lambda admin: admin.groups.describe_classic(group))
    except RequestFailed as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _lags(
    client: Client, committed: dict[tuple[str, int], int]
) -> list[tuple[str, int, int, int | None, int | None]]:
    ends: dict[str, dict[int, int]] = {}
    for name, _ in committed:
        if name not in ends:
            try:
                topic = client.topic(name)
                ends[name] = operations.list_offsets(client, topic, operations.LATEST)
            except RequestFailed:
                ends[name] = {}
    rows: list[tuple[str, int, int, int | None, int | None]] = []
    for (name, index), offset in committed.items():
        end = ends[name].get(index)
        rows.append((name, index, offset, end, None if end is None else end - offset))
    return rows


@group_app.command("alter")
def group_alter(
    name: GroupName = None,
    group: GroupOption = None,
    option: Settings = None,
    unset: Unset = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Set or unset configs of a group; it may be there later."""
    wanted = named(name, group, "group")
    altered = changes(option, unset)
    with Client(bootstrap, command_config=command_config) as client:
        operations.alter_group(client, wanted, altered)
    output.say(f"altered {wanted}")


@group_app.command("delete")
def group_delete(
    names: Annotated[list[str] | None, typer.Argument(metavar="GROUP...")] = None,
    group: GroupOption = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Delete groups that have no members."""
    wanted = all_named(names, group, "group")
    with Client(bootstrap, command_config=command_config) as client:
        for group_id in wanted:
            _delete(client, group_id)
            output.say(f"deleted {group_id}")


def _delete(client: Client, group: str) -> None:
    client.ask(lambda admin: admin.groups.delete(group))


@group_app.command("reset-offsets")
def group_reset_offsets(
    topic: Annotated[str, typer.Option("--topic", "-t")],
    name: GroupName = None,
    group: GroupOption = None,
    to: Annotated[
        str | None, typer.Option("--to", help="earliest, latest, an offset or @milliseconds.")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="As --to earliest.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="As --to latest.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="As --to with an offset.")
    ] = None,
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", help="2026-01-31T12:00:00, UTC without a zone.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="What happens anyway.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Commit new offsets for a group that has no members, or let a share group begin there."""
    if dry_run and execute:
        raise typer.BadParameter("--dry-run and --execute exclude each other")
    targets = [
        to,
        "earliest" if to_earliest else None,
        "latest" if to_latest else None,
        None if to_offset is None else str(to_offset),
        None if to_datetime is None else f"@{_milliseconds(to_datetime)}",
    ]
    given = [target for target in targets if target is not None]
    if len(given) != 1:
        raise typer.BadParameter("where to? Give one of --to, --to-earliest, --to-latest, ...")
    wanted = named(name, group, "group")
    with Client(bootstrap, command_config=command_config) as client:
        committed = operations.offsets_at(client, topic, given[0])
        is_shared = share_groups.find(client, wanted) is not None
        if is_shared and not dry_run:
            share_groups.alter(client, wanted, committed)
        elif not dry_run:
            client.ask(lambda admin: admin.offsets.commit(wanted, committed))
    rows = [(name, index, offset) for (name, index), offset in committed.items()]
    columns = ("topic", "partition", "start" if is_shared else "committed")
    output.table(columns, rows, as_json=as_json)


def _milliseconds(text: str) -> int:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text}: expected a time such as 2026-01-31T12:00:00") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    if moment < _EPOCH:
        raise typer.BadParameter(f"{text}: before 1970")
    return int(moment.timestamp() * 1000)
