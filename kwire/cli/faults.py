"""`kwire fault`: list, add, remove, clear, kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from kwire.cli import output
from kwire.cli.options import AsJson
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError
from kwire.faults.errors import FaultError
from kwire.faults.kinds import KINDS, Given
from kwire.faults.rules import accepted_names, parse_rule
from kwire.node.fault_client import FaultClient

T = TypeVar("T")

DEFAULT_CONTROL = "127.0.0.1:9097"

fault_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Faults on command, of a broker that runs with kwire serve --faults.",
)
Control = Annotated[
    str,
    typer.Option("--control", help="HOST:PORT of the control API.", envvar="KWIRE_FAULT_CONTROL"),
]
Token = Annotated[
    str | None,
    typer.Option("--token", help="Of kwire.fault.token.", envvar="KWIRE_FAULT_TOKEN"),
]


@fault_app.command("kinds")
def fault_kinds(as_json: AsJson = False) -> None:
    """The faults there are, with what each takes."""
    rows = [(one.name, one.text, " ".join(accepted_names(one))) for one in KINDS.values()]
    output.table(("fault", "does", "takes"), rows, as_json=as_json)


@fault_app.command("list")
def fault_list(
    as_json: AsJson = False, control: Control = DEFAULT_CONTROL, token: Token = None
) -> None:
    """The faults that stand, and how many requests each has met."""
    rows = []
    for one in _asked(control, lambda: FaultClient(control, token).standing()):
        rest = {name: value for name, value in one.items() if name not in ("id", "kind", "hits")}
        rows.append((one["id"], one["kind"], _shown(rest), one["hits"]))
    output.table(("id", "fault", "with", "hits"), rows, as_json=as_json)


@fault_app.command("add")
def fault_add(
    kind: Annotated[str, typer.Argument(metavar="FAULT", help="See kwire fault kinds.")],
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Selectors and options."),
    ] = None,
    control: Control = DEFAULT_CONTROL,
    token: Token = None,
) -> None:
    """Add a fault: kwire fault add delay ms=500 api=Fetch times=3."""
    rule: dict[str, Given] = {"kind": kind}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ClientError(f"{text} is no option of {kind}; accepted: NAME=VALUE")
        if name in rule:
            raise ClientError(f"{name} is given twice: {rule[name]} and {value}; accepted: one")
        rule[name] = value

    def add() -> dict[str, Given]:
        parse_rule(rule)
        return FaultClient(control, token).add(rule)

    added = _asked(control, add)
    if added["id"]:
        output.say(f"fault {added['id']} stands: {kind}")
    else:
        output.say(f"done: {kind}")


@fault_app.command("remove")
def fault_remove(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, help="See kwire fault list.")],
    control: Control = DEFAULT_CONTROL,
    token: Token = None,
) -> None:
    """End a fault."""
    removed = _asked(control, lambda: FaultClient(control, token).remove(number))
    output.say(f"fault {number} has ended: {removed['kind']} met {removed['hits']}")


@fault_app.command("clear")
def fault_clear(control: Control = DEFAULT_CONTROL, token: Token = None) -> None:
    """End all faults."""
    _asked(control, lambda: FaultClient(control, token).clear())
    output.say("no fault stands")


def _shown(values: dict[str, Given]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _asked(control: str, ask: Callable[[], T]) -> T:
    """What the control API says; ClientError, one line."""
    try:
        return ask()
    except FaultError as error:
        raise ClientError(str(error)) from None
    except OSError as error:
        why = error.strerror or error
        raise ClientError(
            f"no control API of faults answers at {control} ({why}): start the broker with "
            "kwire serve --faults, or say --control HOST:PORT"
        ) from None
