"""`kwire trace`: show, stat, replay."""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.cli import output
from kwire.cli import trace_options as options
from kwire.cli.options import AsJson, CommandConfig
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError
from kwire.trace.files import TraceError, TraceReader
from kwire.trace.recorder import Selection
from kwire.trace.statistics import BY, Row, Statistics

trace_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Read traces of kwire proxy and kwire serve --trace.",
)
TraceFile = Annotated[str, typer.Argument(metavar="FILE", help="A trace, compressed or not.")]
EXIT_DIFFERS = 1


@trace_app.command("show")
def show(
    file: TraceFile,
    explain: options.Explain = False,
    client_id: options.ClientId = None,
    api: options.Api = None,
    topic: options.Topic = None,
    group: options.Group = None,
    errors: options.ErrorsOnly = False,
    slower_than: options.SlowerThan = None,
) -> None:
    """The lines of a trace that are wanted, or what happens in it in words."""
    from kwire.cli.narration import Narration

    selection = Selection(options.filters(client_id, api, topic, group, errors, slower_than))
    narration = Narration() if explain else None
    reader = TraceReader(file)
    try:
        for event in reader:
            for wanted in selection.select(event):
                if narration is None:
                    output.say(wanted.to_line())
                else:
                    narration.tell(wanted)
    except TraceError as error:
        raise ClientError(str(error)) from None
    _check_whole(reader)


@trace_app.command("stat")
def stat(
    file: TraceFile,
    by: Annotated[str, typer.Option("--by", help="A row for each: api, client, both.")] = "api",
    client_id: options.ClientId = None,
    topic: options.Topic = None,
    as_json: AsJson = False,
) -> None:
    """Requests, errors, latencies and bytes, by API or client."""
    if by not in BY:
        raise typer.BadParameter(f"--by {by}: accepted are {', '.join(BY)}")
    selection = Selection(options.filters(client_id, None, topic, None, False, None))
    statistics = Statistics(by)
    reader = TraceReader(file)
    try:
        for event in reader:
            for wanted in selection.select(event):
                statistics.add(wanted)
    except TraceError as error:
        raise ClientError(str(error)) from None
    columns = [
        name for name, is_shown in (("client", by != "api"), ("API", by != "client")) if is_shown
    ]
    columns += [
        "requests",
        "no reply",
        "errors",
        "p50 ms",
        "p99 ms",
        "max ms",
        "bytes in",
        "bytes out",
    ]
    rows = [_cells(row, by, as_json) for row in statistics.rows()]
    output.table(columns, rows, as_json=as_json)
    _check_whole(reader)


def _cells(row: Row, by: str, as_json: bool) -> list[output.Json]:
    cells: list[output.Json] = []
    if by != "api":
        cells.append(row.client)
    if by != "client":
        cells.append(row.api)
    errors: output.Json = dict(row.errors)
    if not as_json:
        errors = " ".join(f"{name}:{count}" for name, count in sorted(row.errors.items()))
    latencies = row.latencies
    cells += [row.requests, row.unanswered, errors]
    cells += [round(ms, 3) for ms in (latencies.quantile(0.5), latencies.quantile(0.99))]
    cells += [round(latencies.max_ms, 3), row.request_bytes, row.response_bytes]
    return cells


def _check_whole(reader: TraceReader) -> None:
    if reader.damage:
        raise ClientError(f"{reader.path}: read up to {reader.damage}")


@trace_app.command("replay")
def replay(
    file: TraceFile,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="HOST:PORT[,HOST:PORT] of a cluster.")
    ],
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3600, help="Seconds to wait for a reply.")
    ] = 60.0,
    differences: Annotated[
        int, typer.Option("--differences", min=1, max=1_000_000, help="Show no more than these.")
    ] = 100,
    command_config: CommandConfig = None,
) -> None:
    """Send the requests of a trace to a cluster, and compare what it answers. Exit status 1 when
    that differs."""
    from kwire.cli.client import connection_settings
    from kwire.network.loop import new_event_loop
    from kwire.trace.replay.player import Player

    settings = connection_settings(target, None, command_config)
    settings = settings._replace(request_timeout_s=timeout)
    reader = TraceReader(file)
    loop = new_event_loop()
    shown = 0

    def tell(text: str) -> None:
        nonlocal shown
        shown += 1
        if shown <= differences:
            output.say(text)

    try:
        result = loop.run_until_complete(Player(loop, settings, tell).play(reader))
    except TraceError as error:
        raise ClientError(str(error)) from None
    finally:
        loop.close()
    if shown > differences:
        output.say(f"{shown - differences} more differences")
    output.say(
        f"{result.sent} requests sent, {result.compared} replies compared, "
        f"{result.different} differ, {result.left_out} requests left out"
    )
    for why, count in sorted(result.reasons.items()):
        output.say(f"left out: {count} {why}")
    _check_whole(reader)
    if result.different:
        raise typer.Exit(EXIT_DIFFERS)
