"""`kwire consume`: records of a topic on standard output."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import operations, record_format, share_groups
from kwire.cli.client import Client
from kwire.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_REGISTRY,
    Bootstrap,
    CommandConfig,
    Registry,
    TopicOption,
    named,
    pairs,
)
from kwire.cli.records import Consumed
from kwire.cli.records import consume as consume_records
from kwire.client.errors import ClientError, RequestFailed
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.cli.share_worker import Decode, Work

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_PROPERTIES = ("print.key", "key.separator", "null.literal")


FromEnd = Annotated[bool, typer.Option("--from-end", help="Only what is new.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="The default, but for a group's offsets.")
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset", "-o", help="Start at earliest, latest, an offset, -N or @milliseconds."
    ),
]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for more.")]
Count = Annotated[
    int, typer.Option("--count", "--max-messages", "-c", min=0, help="Stop after so many.")
]
TimeoutMs = Annotated[
    int, typer.Option("--timeout-ms", min=0, help="With --follow: stop when nothing comes.")
]
Group = Annotated[
    str | None, typer.Option("--group", "-g", help="Go on from its offsets, and commit.")
]
Partitions = Annotated[list[int] | None, typer.Option("--partition", "-p")]
Layout = Annotated[
    str | None,
    typer.Option(
        "--format", "-f", help="json, or as kcat's: %t %p %o %T %k %s %K %S %h, \\n, \\t."
    ),
]
Json = Annotated[bool, typer.Option("--json", "-J", help="As --format json.")]
Committed = Annotated[bool, typer.Option("--read-committed", help="Only committed transactions.")]
Isolation = Annotated[
    str, typer.Option("--isolation-level", help="Kafka's word for it: read_committed.")
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "--formatter-property", help="Kafka's print.key and others."),
]


Share = Annotated[
    str | None, typer.Option("--share", help="Work for a share group: each record goes to one.")
]
Exec = Annotated[
    str | None,
    typer.Option(
        "--exec",
        help="With --share: run this for each record, the value on its standard input. Exit 0 "
        "accepts it, 75 and signals release it, 126 and 127 (it cannot be run) end the worker, "
        "anything else rejects it.",
    ),
]

Decoded = Annotated[
    bool, typer.Option("--schema", help="Values as JSON, by the schemas that they name.")
]
DecodedKeys = Annotated[bool, typer.Option("--key-schema", help="Keys as JSON too.")]


def consume(
    name: Annotated[str | None, typer.Argument(metavar="TOPIC", show_default=False)] = None,
    topic: TopicOption = None,
    from_end: FromEnd = False,
    from_beginning: FromBeginning = False,
    offset: Offset = None,
    follow: Follow = False,
    count: Count = 0,
    timeout_ms: TimeoutMs = 0,
    group: Group = None,
    share: Share = None,
    command: Exec = None,
    partition: Partitions = None,
    layout: Layout = None,
    as_json: Json = False,
    keys: Annotated[bool, typer.Option("--keys", "-k", help="Print keys too.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Print positions too.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print times too.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Print headers too.")] = False,
    null: Annotated[str, typer.Option("--null", help="What stands for a null.")] = "",
    committed: Committed = False,
    isolation: Isolation = ISOLATION_LEVELS[0],
    properties: Properties = None,
    schema: Decoded = False,
    key_schema: DecodedKeys = False,
    registry: Registry = DEFAULT_REGISTRY,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Print records, one a line, from the beginning to the end of the topic."""
    wanted = named(name, topic, "topic")
    if isolation not in ISOLATION_LEVELS:
        raise typer.BadParameter(f"{isolation}: not one of {', '.join(ISOLATION_LEVELS)}")
    start = _start(from_end, from_beginning, offset)
    asked = ((timestamps, "%T"), (offsets, "%p:%o"), (headers, "%h"), (keys, "%k"))
    fields = [shown for is_asked, shown in asked if is_asked]
    show = _shown(layout, as_json, fields, null, pairs(properties))
    decode = _by_schemas(registry, values=schema, keys=key_schema)
    if share is not None or command is not None:
        has_start = from_end or from_beginning or offset is not None or bool(partition)
        _check_share(share, group, has_start or committed or isolation != ISOLATION_LEVELS[0])
        from kwire.cli.share_worker import Work

        task = Work(wanted, share or "", command, show, count, timeout_ms, decode)
        with contextlib.suppress(KeyboardInterrupt):
            _work(task, bootstrap, command_config)
        return
    with Client(bootstrap, command_config=command_config) as client:
        if group is not None:
            share_groups.refuse(client, group)
        waits = follow or start == "latest"
        positions = _positions(client, wanted, group, start, partition, waits)
        pause = _Pause(timeout_ms)
        records = consume_records(
            client,
            wanted,
            positions,
            follow=waits,
            committed_only=committed or isolation == "read_committed",
            waiting=pause.waiting,
        )
        try:
            _print(
                records if decode is None else map(decode, records), show, pause, count, positions
            )
        finally:
            sys.stdout.flush()
            if group is not None:
                moved = {(wanted, index): at for index, at in positions.items()}
                client.ask(lambda admin: admin.offsets.commit(group, moved))


def _print(
    records: Iterator[Consumed],
    show: record_format.Show,
    pause: _Pause,
    count: int,
    positions: dict[int, int],
) -> None:
    """Until nothing comes, somebody interrupts, or `count` are printed. `positions` is past what
    is printed, and past nothing else."""
    with contextlib.suppress(KeyboardInterrupt, _Idle):
        for printed, consumed in enumerate(records, 1):
            sys.stdout.buffer.write(show(consumed))
            positions[consumed.partition] = consumed.record.offset + 1
            pause.ends()
            if printed == count:
                break


def _by_schemas(registry: str, *, values: bool, keys: bool) -> Decode | None:
    """What makes JSON of keys and values; None where nothing is asked."""
    if not values and not keys:
        return None
    from kwire.cli import schema_values
    from kwire.cli.registry import Registry as Asked

    return schema_values.decoding(schema_values.Schemas(Asked(registry)), values, keys)


def _work(task: Work, bootstrap: str, command_config: str | None) -> None:
    from kwire.cli.share_worker import work

    try:
        work(bootstrap, command_config, task)
    except RequestFailed as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        with Client(bootstrap, command_config=command_config) as client:
            kind = share_groups.other_kind(client, task.group)
        if kind is None:
            raise
        raise ClientError(
            f"group {task.group} is a {kind} group: read for it with --group {task.group}"
        ) from None


def _check_share(share: str | None, group: str | None, is_elsewhere: bool) -> None:
    if share is None:
        raise typer.BadParameter("--exec works for a share group: --share GROUP")
    if group is not None:
        raise typer.BadParameter("--share and --group exclude each other")
    if is_elsewhere:
        raise typer.BadParameter(
            "where a share group begins and what it sees are configs of the group: "
            "share.auto.offset.reset, share.isolation.level"
        )


class _Pause:
    """The time since the last record; `waiting` raises _Idle after `timeout_ms` (0: never)."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000
        self._since = time.monotonic()

    def ends(self) -> None:
        if self._timeout_s:
            self._since = time.monotonic()

    def waiting(self) -> None:
        sys.stdout.flush()
        if self._timeout_s and time.monotonic() - self._since > self._timeout_s:
            raise _Idle


class _Idle(Exception):
    """Nothing came for --timeout-ms."""


def _start(from_end: bool, from_beginning: bool, offset: str | None) -> str:
    given = [from_end, from_beginning, offset is not None]
    if sum(given) > 1:
        raise typer.BadParameter("--from-end, --from-beginning and --offset exclude each other")
    if offset is None:
        return "latest" if from_end else "earliest"
    return {"end": "latest", "beginning": "earliest"}.get(offset, offset)


def _positions(
    client: Client,
    name: str,
    group: str | None,
    start: str,
    wanted: list[int] | None,
    create: bool,
) -> dict[int, int]:
    """Where to start, by partition: a group's committed offsets, else `start`."""
    client.topic(name, create=create)
    at = operations.offsets_at(client, name, start)
    positions = {index: offset for (_, index), offset in at.items()}
    if group is not None:
        committed = client.ask(lambda admin: admin.offsets.committed(group))
        for (topic_name, index), offset in committed.items():
            if topic_name == name and index in positions:
                positions[index] = offset
    if wanted:
        missing = [index for index in wanted if index not in positions]
        if missing:
            raise ClientError(f"topic {name} has no partition {missing[0]}")
        positions = {index: positions[index] for index in wanted}
    return positions


def _shown(
    layout: str | None,
    as_json: bool,
    fields: list[str],
    null: str,
    properties: dict[str, str],
) -> record_format.Show:
    """How a record is printed: JSON, a format string, or the fields asked for before the value."""
    for name in properties:
        if name not in _PROPERTIES:
            raise typer.BadParameter(f"{name}: the properties are {', '.join(_PROPERTIES)}")
    if (as_json or layout is not None) and (fields or (as_json and layout not in (None, "json"))):
        raise typer.BadParameter("--format and --json say what is printed; leave out the others")
    if as_json or layout == record_format.JSON_FORMAT:
        return record_format.show_json
    marker = (null or properties.get("null.literal", "")).encode(errors="surrogateescape")
    if layout is None:
        separator = properties.get("key.separator", "\t").replace("%", "%%").replace("\\", "\\\\")
        is_with_key = properties.get("print.key", "").lower() == "true" and "%k" not in fields
        key = f"%k{separator}" if is_with_key else ""
        layout = "\t".join([*fields, f"{key}%s"]) + "\n"
    try:
        return record_format.show_format(layout, marker)
    except ClientError as error:
        raise typer.BadParameter(str(error)) from None
