"""Options that several commands have, with Kafka's spellings beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

DEFAULT_BOOTSTRAP = "localhost:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "--bootstrap-server",
        "-b",
        envvar="KWIRE_BOOTSTRAP",
        help="Where the cluster is: HOST:PORT.",
    ),
]
CommandConfig = Annotated[
    str | None,
    typer.Option(
        "--command-config",
        "--consumer.config",
        "--producer.config",
        envvar="KWIRE_COMMAND_CONFIG",
        show_default=False,
        help="How to log in: a file of Kafka's client properties.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--option", "--config", "-o", help="A config, name=value."),
]
Unset = Annotated[
    list[str] | None, typer.Option("--unset", "--delete-config", help="Back to default.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, an object a line.")]
TopicOption = Annotated[
    str | None, typer.Option("--topic", "-t", show_default=False, help="The topic's name too.")
]
GroupOption = Annotated[
    str | None, typer.Option("--group", "-g", show_default=False, help="The group's name too.")
]


def changes(option: list[str] | None, unset: list[str] | None) -> dict[str, str | None]:
    """What `alter` sets, and unsets (None), by the names of configs; one at least."""
    found: dict[str, str | None] = dict(pairs(option))
    found.update(dict.fromkeys(unset or []))
    if not found:
        raise typer.BadParameter("nothing to alter: give -o name=value or --unset name")
    return found


Registry = Annotated[
    str,
    typer.Option(
        "--registry",
        "-r",
        envvar="KWIRE_REGISTRY",
        help="Where the registry is: http://[USER:PASSWORD@]HOST:PORT.",
    ),
]
DEFAULT_REGISTRY = "http://localhost:8080"


def named(given: str | None, option: str | None, what: str) -> str:
    """The one name of `what` (topic, group), as an argument or by Kafka's option."""
    if given is not None and option is not None and given != option:
        raise typer.BadParameter(f"two names of a {what}: {given} and {option}")
    name = given if given is not None else option
    if name is None:
        raise typer.BadParameter(f"which {what}? Give its name")
    _check_text(name, what)
    return name


def all_named(given: list[str] | None, option: str | None, what: str) -> list[str]:
    """One name at least, as arguments or by Kafka's option."""
    names = [*(given or []), *([option] if option is not None else [])]
    if not names:
        raise typer.BadParameter(f"which {what}? Give its name")
    for name in names:
        _check_text(name, what)
    return names


def _check_text(name: str, what: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        raise typer.BadParameter(f"{name}: the name of a {what} is UTF-8") from None


def pairs(texts: list[str] | None) -> dict[str, str]:
    """`name=value` texts as a mapping."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text}: expected name=value")
        found[name] = value
    return found
