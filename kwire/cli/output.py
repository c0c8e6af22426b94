"""What the commands print: tables for people, tabs for pipes, JSON for programs.

Names that others have chosen (groups, clients, principals, resources of ACLs) are in it: nothing of
them begins a line, a column, or moves a terminal's cursor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
"""What JSON knows; also what a cell of a table holds."""

COLUMN_GAP = "  "
LAYOUT = "\n\t"
"""What lines of ours are laid out with."""


def printable(text: str, beside: str = "") -> str:
    """A text on one line: characters that are not printable, nor in `beside`, as Python writes
    them (`\\n`, `\\x1b`)."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in beside else ascii(one)[1:-1] for one in text)


def say(text: str) -> None:
    """A line on standard output."""
    sys.stdout.write(printable(text, LAYOUT) + "\n")


def say_json(value: Mapping[str, Json]) -> None:
    """One object on a line of its own."""
    line = json.dumps(value, ensure_ascii=False)
    sys.stdout.write((line if line.isprintable() else json.dumps(value)) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Json]], *, as_json: bool = False) -> None:
    """Rows below their columns' names.

    A table for people, or paragraphs where it is wider than the terminal: names stay whole, to
    be copied. Tab-separated lines when the output is not a terminal, the names first. With
    `as_json` an object a row, with numbers, lists and nulls as they are.
    """
    if as_json:
        for row in rows:
            say_json(as_object(columns, row))
        return
    cells = [[_cell(value) for value in row] for row in rows]
    console = terminal()
    if console is None:
        for line in (columns, *cells):
            say("\t".join(line))
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    if sum(widths) + len(COLUMN_GAP) * (len(widths) - 1) > console.width:
        _paragraphs(columns, cells)
        return
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in cells:
        shown.add_row(*map(Text, row))  # what looks like markup is a name
    console.print(shown)


def terminal() -> Console | None:
    """The terminal that standard output is, None for a pipe or a file: Rich is not loaded then."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console()


def as_object(columns: Sequence[str], row: Sequence[Json]) -> dict[str, Json]:
    """A row by its columns' names, as JSON has them: `Kafka's default` is `kafkas_default`."""
    names = [name.lower().replace("'", "").replace(" ", "_") for name in columns]
    return dict(zip(names, row))


def _paragraphs(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A row's first cell, and below it the others that hold something, a line each."""
    label_width = max(map(len, columns[1:]), default=0)
    for row in rows:
        say(row[0])
        for column, cell in zip(columns[1:], row[1:]):
            if cell:
                say(f"  {column:{label_width}}{COLUMN_GAP}{cell}")


def _cell(value: Json) -> str:
    if isinstance(value, list):
        return printable(",".join(map(str, value)))
    return "" if value is None else printable(str(value))
