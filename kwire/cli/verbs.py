"""Command lines that cannot be: one line that says what is wrong and what was meant, perhaps."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

CUTOFF = 0.5
# What other tools call it, Kafka's own among them.
_SYNONYMS = {
    "ls": "list",
    "rm": "delete",
    "remove": "delete",
    "drop": "delete",
    "add": "create",
    "new": "create",
    "make": "create",
    "show": "describe",
    "get": "describe",
    "set": "alter",
    "update": "alter",
    "edit": "alter",
    "seek": "reset-offsets",
    "start": "serve",
    "run": "serve",
    "broker": "serve",
    "read": "consume",
    "cat": "consume",
    "write": "produce",
    "send": "produce",
    "status": "info",
    "ping": "info",
    "cluster": "info",
    "storage": "format",
    "uuid": "random-uuid",
    "dump-log": "log",
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer-groups": "group",
}


def nearest(verb: str, known: Iterable[str]) -> str | None:
    """The command that was meant: another tool's word for it, a part of one, a misspelt one or
    a misspelt part."""
    names = list(known)
    verb = verb.lower().removeprefix("kafka-").removesuffix(".sh")
    synonym = _SYNONYMS.get(verb)
    if synonym in names:
        return synonym
    parts = [name for name in names if len(verb) > 2 and (verb in name or name in verb)]
    if parts:
        return parts[0]
    words = {word: name for name in names for word in (*name.split("-"), name)}
    near = get_close_matches(verb, words, n=1, cutoff=CUTOFF)
    return words[near[0]] if near else None


class Verbs(TyperGroup):
    """A group of commands that knows which one was meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            meant = nearest(args[0], self.list_commands(ctx))
            path = str(ctx.command_path)
            hint = f"did you mean {path} {meant}?" if meant else f"{path} --help lists them"
            ctx.fail(f"there is no {path} {args[0]}; {hint}")
        return super().resolve_command(ctx, args)


def complaint(error: Any) -> str:
    """One line for what is wrong with a command line, out of Typer's exception."""
    text = " ".join(str(error.format_message()).split()).rstrip(".")
    text = text.removeprefix("Invalid value: ")
    options = getattr(error, "possibilities", None)
    if options:
        text = f"No such option: {error.option_name}; did you mean {' or '.join(options)}?"
    context: Any = getattr(error, "ctx", None)
    path = getattr(context, "command_path", None)
    group = getattr(context, "command", None)
    option = getattr(error, "option_name", None)
    if option and isinstance(group, Verbs):  # `kwire topic --list`, as Kafka's tools have it
        meant = nearest(option.lstrip("-"), group.list_commands(context))
        if meant:
            return f"No such option: {option}; did you mean {path} {meant}?"
    if path is None or "--help" in text or text.endswith("?"):
        return text
    return f"{text}; {path} --help tells more"
