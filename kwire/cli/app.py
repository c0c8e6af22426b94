"""The `kwire` command's commands: what is not in a file of its own, and what all have in common.

Typer is imported here and in what this imports only, so that `kwire serve` stays quick to start.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from kwire.cli import operations, output
from kwire.cli.acls import acl_app
from kwire.cli.client import Client
from kwire.cli.consume import consume
from kwire.cli.faults import fault_app
from kwire.cli.groups import group_app
from kwire.cli.options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, CommandConfig
from kwire.cli.produce import produce
from kwire.cli.proxy import proxy
from kwire.cli.schema import schema_app
from kwire.cli.security import security_app
from kwire.cli.share import share_app
from kwire.cli.topics import topic_app
from kwire.cli.trace import trace_app
from kwire.cli.verbs import Verbs, complaint
from kwire.client.errors import ClientError
from kwire.protocol import messages as m

EXIT_FAILED = 1
REFUSALS_SHOWN = 50
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
INFO_TIMEOUT_S = 5.0
TRACEBACK = "KWIRE_TRACEBACK"

app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A Kafka broker in Python. `kwire serve --help` tells how to serve one.",
)
app.add_typer(topic_app, name="topic")
app.add_typer(group_app, name="group")
app.add_typer(share_app, name="share")
app.add_typer(fault_app, name="fault")
app.add_typer(security_app, name="security")
app.add_typer(acl_app, name="acl")
app.add_typer(schema_app, name="schema")
app.command("produce")(produce)
app.command("consume")(consume)
app.add_typer(trace_app, name="trace")
app.command("proxy")(proxy)


def _show_version(wanted: bool) -> None:
    if wanted:
        from kwire import __version__

        output.say(f"kwire {__version__}")
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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack letters of a name
    try:
        status = app(arguments, prog_name="kwire", standalone_mode=False)
        sys.stdout.flush()
    except ClientError as error:
        return _complain(str(error), EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_FAILED
    except OSError as error:  # of the network, `Client` tells; of files, their names
        if error.filename is None:
            _forget_stdout()
        what = error.filename or "standard output cannot be written"
        return _complain(f"{what}: {error.strerror or error}", EXIT_FAILED)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return EXIT_USAGE
        if hasattr(error, "format_message"):  # Typer's own complaints about the command line
            return _complain(complaint(error), EXIT_USAGE)
        if os.environ.get(TRACEBACK):
            raise
        text = f"{type(error).__name__}: {error}"
        return _complain(f"{text} (a fault of kwire's; {TRACEBACK}=1 tells where)", EXIT_FAILED)
    return status if isinstance(status, int) else 0


def _complain(text: str, status: int) -> int:
    line = output.printable(" ".join(text.splitlines()))
    sys.stderr.write(f"kwire: {line}\n")
    return status


def _forget_stdout() -> None:
    """Nobody reads it any more: what is still buffered is not worth a complaint at the end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


@app.command("configs")
def configs(
    names: Annotated[
        list[str] | None, typer.Argument(help="Config names, or parts of them.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            help="broker, topic, group, client-metrics, quota or kwire. Without: broker and "
            "kwire, or where there is such a config.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole table.")] = False,
    as_json: AsJson = False,
) -> None:
    """What `kwire serve` sets for developers, and what kwire does with each of Kafka's configs."""
    from kwire.cli import tables

    if not names and not everything and scope is None:
        settings = ("setting", "value", "Kafka's default")
        if as_json:
            output.table(settings, tables.developer_rows(), as_json=True)
            return
        output.say("Developer settings: applied when kwire serve has no --config.\n")
        output.table(settings, tables.developer_rows())
        output.say("\nkwire configs NAME tells of one config, kwire configs --all of all.")
        return
    rows = tables.config_rows(scope, names or [])
    if rows is None:
        raise typer.BadParameter(f"{scope}: not one of {', '.join(tables.SCOPES)}")
    if not rows:
        of_scope = "" if scope is None else f"{scope} "
        raise ClientError(f"no {of_scope}config has {' or '.join(names or [])} in its name")
    columns = (
        "config",
        "type",
        "default",
        "accepts",
        "changes",
        "support",
        "note",
        "documentation",
    )
    output.table(columns, rows, as_json=as_json)


@app.command("api")
def api(as_json: AsJson = False) -> None:
    """The APIs that kwire answers, with their versions."""
    from kwire.cli import tables

    output.table(("key", "API", "versions"), tables.api_rows(), as_json=as_json)


@app.command("info")
def info(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the exit status.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.01, max=3600, help="Seconds to wait for an answer.")
    ] = INFO_TIMEOUT_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Whether a broker answers, and what it says of its cluster. Exit status 1 when none does, or
    when it is not ready, in the words of /health/ready."""
    try:
        with Client(bootstrap, timeout, command_config) as client:
            metadata = client.metadata([])
            versions = client.connection().api_versions
            refused = operations.refusals(client)
    except ClientError:
        if quiet:
            raise typer.Exit(EXIT_FAILED) from None
        raise
    if not quiet:
        (_info_json if as_json else _info_text)(metadata, versions, refused)
    if refused:
        raise typer.Exit(EXIT_FAILED)


Refusals = list[tuple[str, str]]


def _info_json(
    metadata: m.MetadataResponse, versions: m.ApiVersionsResponse, refused: Refusals
) -> None:
    brokers = [
        {"id": each.node_id, "host": each.host, "port": each.port, "rack": each.rack}
        for each in metadata.brokers
    ]
    output.say_json(
        {
            "cluster": metadata.cluster_id,
            "controller": metadata.controller_id,
            "brokers": brokers,
            "features": _levels(versions),
            "apis": len(versions.api_keys),
            "status": "down" if refused else "up",
            "reasons": [f"{name}: {reason}" for name, reason in refused],
            "refuses": [{"what": name, "reason": reason} for name, reason in refused],
        }
    )


def _info_text(
    metadata: m.MetadataResponse, versions: m.ApiVersionsResponse, refused: Refusals
) -> None:
    output.say(f"cluster     {metadata.cluster_id}")
    output.say(f"controller  {metadata.controller_id}")
    for broker in metadata.brokers:
        rack = f" rack {broker.rack}" if broker.rack else ""
        output.say(f"broker      {broker.node_id} at {broker.host}:{broker.port}{rack}")
    for name, level in _levels(versions).items():
        output.say(f"feature     {name} {level}")
    output.say(f"APIs        {len(versions.api_keys)}")
    output.say(f"status      {'down' if refused else 'up'}")
    for name, reason in refused[:REFUSALS_SHOWN]:
        output.say(f"reason      {name}: {reason}")
    if len(refused) > REFUSALS_SHOWN:
        output.say(f"reason      {len(refused) - REFUSALS_SHOWN} more")


def _levels(versions: m.ApiVersionsResponse) -> dict[str, int]:
    return {each.name: each.max_version_level for each in versions.finalized_features}


@app.command("random-uuid")
def random_uuid() -> None:
    """A new id, for a cluster or a directory: `kwire format` is given them."""
    from kwire.clock import SystemRandom
    from kwire.protocol import uuids

    output.say(uuids.to_text(uuids.random_uuid(SystemRandom())))


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
