"""The commands of the first hour: topic, group, produce, consume, configs, api, info.

Typer and Rich are imported here only, so that `kwire serve` stays quick to start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kwire.cli import operations
from kwire.cli.client import Client, ClientError, RequestFailed
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec

EXIT_FAILED = 1
REFUSALS_SHOWN = 50
EXIT_USAGE = 2
PRODUCE_BATCH_RECORDS = 500
COLUMN_GAP = "  "
DEFAULT_BOOTSTRAP = "localhost:9092"

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A Kafka broker in Python. `kwire serve --help` tells how to serve one.",
)
topic_app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter, delete topics.")
group_app = typer.Typer(no_args_is_help=True, help="List, describe, reset and delete groups.")
app.add_typer(topic_app, name="topic")
app.add_typer(group_app, name="group")

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap", "-b", envvar="KWIRE_BOOTSTRAP", help="Where the cluster is: HOST:PORT."
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="A topic config, name=value.")
]


def _show_version(wanted: bool) -> None:
    if wanted:
        from kwire import __version__

        _print(f"kwire {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Of kwire."),
    ] = False,
) -> None:
    pass


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit status. What goes wrong is one line on stderr."""
    try:
        status = app(arguments, prog_name="kwire", standalone_mode=False)
    except ClientError as error:
        sys.stderr.write(f"kwire: {error}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return EXIT_FAILED
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None:
            raise
        # Typer's own complaints about the command line.
        show()
        return EXIT_USAGE
    return status if isinstance(status, int) else 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table for people, or paragraphs where it is wider than the terminal: names stay whole, to
    be copied. Tab-separated lines when the output is not a terminal."""
    console = Console()
    cells = [[_cell(value) for value in row] for row in rows]
    if not console.is_terminal:
        for row in cells:
            _print("\t".join(row))
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    if sum(widths) + len(COLUMN_GAP) * (len(widths) - 1) > console.width:
        _paragraphs(columns, cells)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _paragraphs(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A row's first cell, and below it the others that hold something, a line each."""
    label_width = max(map(len, columns[1:]), default=0)
    for row in rows:
        _print(row[0])
        for column, cell in zip(columns[1:], row[1:]):
            if cell:
                _print(f"  {column:{label_width}}{COLUMN_GAP}{cell}")


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _pairs(texts: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text}: expected name=value")
        pairs[name] = value
    return pairs


@topic_app.command("create")
def topic_create(
    name: str,
    partitions: Annotated[int, typer.Option("--partitions", "-p", show_default=False)] = -1,
    replication: Annotated[int, typer.Option("--replication", "-r", show_default=False)] = -1,
    option: Settings = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a topic; partitions and replicas are the broker's defaults unless given."""
    with Client(bootstrap) as client:
        try:
            operations.create_topic(client, name, partitions, replication, _pairs(option))
        except RequestFailed as error:
            if not if_not_exists or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            _print(f"{name} was there")
            return
    _print(f"created {name}")


@topic_app.command("list")
def topic_list(
    internal: Annotated[bool, typer.Option("--internal", help="Kafka's own topics too.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """The topics with their partitions and replicas."""
    with Client(bootstrap) as client:
        topics = sorted(client.metadata(None).topics, key=lambda topic: str(topic.name))
    rows = [
        (
            topic.name,
            len(topic.partitions),
            max((len(p.replica_nodes) for p in topic.partitions), default=0),
        )
        for topic in topics
        if internal or not topic.is_internal
    ]
    _table(("topic", "partitions", "replicas"), rows)


@topic_app.command("describe")
def topic_describe(
    name: str,
    all_configs: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """A topic's partitions, offsets and configs."""
    from kwire.protocol import uuids

    with Client(bootstrap) as client:
        topic = client.topic(name)
        first = operations.list_offsets(client, topic, operations.EARLIEST)
        last = operations.list_offsets(client, topic, operations.LATEST)
        configs = operations.topic_configs(client, name)
    _print(f"{name} ({uuids.to_text(topic.topic_id)})")
    rows = [
        (
            p.partition_index,
            p.leader_id,
            p.leader_epoch,
            p.replica_nodes,
            p.isr_nodes,
            first[p.partition_index],
            last[p.partition_index],
        )
        for p in sorted(topic.partitions, key=lambda entry: int(entry.partition_index))
    ]
    _table(("partition", "leader", "epoch", "replicas", "isr", "first", "next"), rows)
    default = 5
    config_rows = [
        (entry.name, entry.value, _SOURCES.get(entry.config_source, ""))
        for entry in configs
        if all_configs or entry.config_source != default
    ]
    if config_rows:
        _print("")
        _table(("config", "value", "from"), config_rows)


_SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, static",
    5: "default",
}


@topic_app.command("alter")
def topic_alter(
    name: str,
    option: Settings = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", help="Back to default.")] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Set or unset configs of a topic."""
    changes: dict[str, str | None] = dict(_pairs(option))
    changes.update(dict.fromkeys(unset or []))
    if not changes:
        raise typer.BadParameter("nothing to alter: give -o name=value or --unset name")
    with Client(bootstrap) as client:
        operations.alter_topic(client, name, changes)
    _print(f"altered {name}")


@topic_app.command("delete")
def topic_delete(names: list[str], bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete topics."""
    with Client(bootstrap) as client:
        for name in names:
            operations.delete_topic(client, name)
            _print(f"deleted {name}")


@group_app.command("list")
def group_list(bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """The groups with their kind and state."""
    with Client(bootstrap) as client:
        groups = operations.list_groups(client)
    rows = [(group.group_id, group.group_type, group.group_state) for group in groups]
    _table(("group", "type", "state"), rows)


@group_app.command("describe")
def group_describe(group: str, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """A group's members and its committed offsets with their lag."""
    with Client(bootstrap) as client:
        described = _described(client, group)
        committed = operations.committed_offsets(client, group)
        if described is None and not committed:
            raise ClientError(f"group {group}: not found")
        rows = _lags(client, committed)
    if described is not None:
        _print(f"{group}: {described.group_state}, {len(described.members)} members")
        members = [(x.member_id, x.client_id, x.client_host) for x in described.members]
        if members:
            _table(("member", "client", "host"), members)
            _print("")
    _table(("topic", "partition", "committed", "end", "lag"), rows)


def _described(client: Client, group: str) -> Any:
    """A classic group's description; None for a group of another kind or none."""
    try:
        return operations.describe_group(client, group)
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


@group_app.command("delete")
def group_delete(groups: list[str], bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete groups that have no members."""
    with Client(bootstrap) as client:
        for group in groups:
            operations.delete_group(client, group)
            _print(f"deleted {group}")


@group_app.command("reset-offsets")
def group_reset_offsets(
    group: str,
    topic: Annotated[str, typer.Option("--topic", "-t")],
    to: Annotated[str, typer.Option("--to", help="earliest, latest, an offset or @milliseconds.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Commit new offsets for a group that has no members."""
    with Client(bootstrap) as client:
        committed = operations.reset_offsets(client, group, topic, to)
    rows = [(name, index, offset) for (name, index), offset in committed.items()]
    _table(("topic", "partition", "committed"), rows)


@app.command("produce")
def produce(
    topic: str,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="Splits key and value.")
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p")] = None,
    compression: Annotated[
        str, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")
    ] = "none",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Send each line of standard input as a record."""
    codec = Codec.__members__.get(compression.upper())
    if codec is None:
        raise typer.BadParameter(f"{compression}: not one of none, gzip, snappy, lz4, zstd")
    separator = None if key_separator is None else key_separator.encode()
    sent = 0
    with Client(bootstrap) as client:
        producer = operations.Producer(client, topic, codec)
        for batch in _batches(sys.stdin.buffer, separator):
            sent += producer.send(batch, partition).records
    sys.stderr.write(f"{sent} {'record' if sent == 1 else 'records'} sent to {topic}\n")


def _batches(
    lines: Iterable[bytes], separator: bytes | None
) -> Iterable[list[tuple[bytes | None, bytes | None]]]:
    """Lines as (key, value) in batches; at a terminal each line is one."""
    size = 1 if sys.stdin.isatty() else PRODUCE_BATCH_RECORDS
    batch: list[tuple[bytes | None, bytes | None]] = []
    for line in lines:
        text = line.rstrip(b"\r\n")
        key: bytes | None = None
        if separator and separator in text:
            key, _, text = text.partition(separator)
        batch.append((key, text))
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


@app.command("consume")
def consume(
    topic: str,
    from_end: Annotated[bool, typer.Option("--from-end", help="Only what is new.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    count: Annotated[int, typer.Option("--count", "-c", min=0, help="Stop after so many.")] = 0,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="Go on from its offsets, and commit.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option("--partition", "-p")] = None,
    keys: Annotated[bool, typer.Option("--keys", "-k", help="Print keys too.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Print positions too.")] = False,
    committed: Annotated[
        bool, typer.Option("--read-committed", help="Only committed transactions.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print records, one a line, from the beginning to the end of the topic."""
    with Client(bootstrap) as client:
        positions = _positions(client, topic, group, from_end, partition, follow or from_end)
        printed = 0
        show = _line_of(keys, offsets)
        try:
            for consumed in operations.consume(
                client,
                topic,
                positions,
                follow=follow or from_end,
                committed_only=committed,
                waiting=sys.stdout.flush,
            ):
                sys.stdout.buffer.write(show(consumed))
                printed += 1
                if count and printed >= count:
                    break
        except KeyboardInterrupt:
            pass
        finally:
            sys.stdout.flush()
            if group is not None:
                moved = {(topic, index): offset for index, offset in positions.items()}
                operations.commit_offsets(client, group, moved)


def _positions(
    client: Client,
    name: str,
    group: str | None,
    from_end: bool,
    wanted: list[int] | None,
    create: bool,
) -> dict[int, int]:
    """Where to start: a group's committed offsets, else the beginning or the end."""
    topic = client.topic(name, create=create)
    start = operations.LATEST if from_end else operations.EARLIEST
    positions = operations.list_offsets(client, topic, start)
    if group is not None:
        for (topic_name, index), offset in operations.committed_offsets(client, group).items():
            if topic_name == name and index in positions:
                positions[index] = offset
    if wanted:
        missing = [index for index in wanted if index not in positions]
        if missing:
            raise ClientError(f"topic {name} has no partition {missing[0]}")
        positions = {index: positions[index] for index in wanted}
    return positions


def _line_of(keys: bool, offsets: bool) -> Callable[[operations.Consumed], bytes]:
    def line(consumed: operations.Consumed) -> bytes:
        record = consumed.record
        fields: list[bytes] = []
        if offsets:
            fields.append(f"{consumed.partition}:{record.offset}".encode())
        if keys:
            fields.append(b"" if record.key is None else bytes(record.key))
        fields.append(b"" if record.value is None else bytes(record.value))
        return b"\t".join(fields) + b"\n"

    return line


@app.command("configs")
def configs(
    names: Annotated[
        list[str] | None, typer.Argument(help="Config names, or parts of them.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", help="broker (the default), topic, group, client-metrics, quota or kwire."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole table.")] = False,
) -> None:
    """What `kwire serve` sets for developers, and what kwire does with each of Kafka's configs."""
    from kwire.cli import tables

    if not names and not everything and scope is None:
        _print("Developer settings: applied when kwire serve has no --config.\n")
        _table(("setting", "value", "Kafka's default"), tables.developer_rows())
        _print("\nkwire configs NAME tells of one config, kwire configs --all of all.")
        return
    scope = scope or "broker"
    rows = tables.config_rows(scope, names or [])
    if rows is None:
        raise typer.BadParameter(f"{scope}: not one of {', '.join(tables.SCOPES)}")
    if not rows:
        raise ClientError(f"no {scope} config has {' or '.join(names or [])} in its name; --scope?")
    _table(("config", "type", "default", "accepts", "changes", "support", "note"), rows)


@app.command("api")
def api() -> None:
    """The APIs that kwire answers, with their versions."""
    from kwire.cli import tables

    _table(("key", "API", "versions"), tables.api_rows())


@app.command("info")
def info(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit status.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Whether a broker answers, and what it says of its cluster. Exit status 1 when none does, or
    when there is a partition that it cannot write to."""
    try:
        with Client(bootstrap) as client:
            metadata = client.metadata([])
            versions = client.connection().api_versions
            refused = operations.refusals(client)
    except ClientError:
        if quiet:
            raise typer.Exit(EXIT_FAILED) from None
        raise
    if quiet:
        if refused:
            raise typer.Exit(EXIT_FAILED)
        return
    _print(f"cluster     {metadata.cluster_id}")
    _print(f"controller  {metadata.controller_id}")
    for broker in metadata.brokers:
        rack = f" rack {broker.rack}" if broker.rack else ""
        _print(f"broker      {broker.node_id} at {broker.host}:{broker.port}{rack}")
    for feature in versions.finalized_features:
        _print(f"feature     {feature.name} {feature.max_version_level}")
    _print(f"APIs        {len(versions.api_keys)}")
    for name, reason in refused[:REFUSALS_SHOWN]:
        _print(f"refuses     {name}: {reason}")
    if len(refused) > REFUSALS_SHOWN:
        _print(f"refuses     {len(refused) - REFUSALS_SHOWN} more")
    if refused:
        raise typer.Exit(EXIT_FAILED)


@app.command("random-uuid")
def random_uuid() -> None:
    """A new id, for a cluster or a directory: `kwire format` is given them."""
    from kwire.clock import SystemRandom
    from kwire.protocol import uuids

    _print(uuids.to_text(uuids.random_uuid(SystemRandom())))


@app.command("serve", context_settings={"ignore_unknown_options": True})
def serve() -> None:
    """Serve a broker; `kwire serve --help` tells how."""
    # Reached only through --help: main.py runs `serve` without this module.


@app.command("format", context_settings={"ignore_unknown_options": True})
def format_directories() -> None:
    """Format a node's data directories, as Kafka's kafka-storage does; `kwire format --help`."""
    # Reached only through --help: main.py runs `format` without this module.


@app.command("spark", context_settings={"ignore_unknown_options": True})
def spark() -> None:
    """Jobs on Spark: archive, replay, mirror, audit, profile; `kwire spark --help`."""
    # Reached only through --help: main.py runs `spark` without this module.


@app.command("log", context_settings={"ignore_unknown_options": True})
def log() -> None:
    """Dump, verify or sum up the files of a data directory; `kwire log --help`."""
    # Reached only through --help: main.py runs `log` without this module.
