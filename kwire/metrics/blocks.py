"""Samples on their way to the HTTP process: blocks of rows, each a line of JSON.

    [labels, names, rows]     a row holds the values of the labels, then those of the metrics

A value is a number, null where there is none, or for quantiles the list [count, 50th, 75th, 95th,
98th, 99th, 99.9th]. A block is small enough to be made in a fraction of a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

ROWS = 40
"""Of a block, where there are many."""

END = "_end"
"""The name of what is not shown: how far the partition of a row can be read. The lag of groups in
seconds is made of it."""

Value: TypeAlias = int | float | list[float] | None
Row: TypeAlias = Sequence[str | Value]


class Block(NamedTuple):
    """See the module."""

    labels: Sequence[str]
    names: Sequence[str]
    rows: Sequence[Row]


def encoded(labels: Sequence[str], names: Sequence[str], rows: Sequence[Row]) -> bytes:
    """One block as bytes."""
    return json.dumps([labels, names, rows], separators=(",", ":")).encode() + b"\n"


def single(values: Mapping[str, Value]) -> bytes:
    """A block of metrics without labels."""
    return encoded((), tuple(values), [list(values.values())])


def in_blocks(labels: Sequence[str], names: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """Rows that come one by one, a block whenever there are enough."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) >= ROWS:
            yield encoded(labels, names, held)
            held = []
    if held:
        yield encoded(labels, names, held)


def decoded(line: bytes) -> Block:
    """A block that `encoded` made. ValueError for anything else."""
    labels, names, rows = json.loads(line)
    return Block(labels, names, rows)
