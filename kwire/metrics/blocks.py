"""Samples on their way to the HTTP process: blocks of rows, each a line of JSON.

    [labels, names, rows]         a row holds the values of the labels, then those of the metrics
    [labels, names, rows, size]   so many bytes follow the line, which are no JSON

A value is a number, null where there is none, or for quantiles the list [count, 50th, 75th, 95th,
98th, 99th, 99.9th]. A block is small enough to be made in a fraction of a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

ROWS = 40
"""Of a block, where there are many."""

LABEL_BYTES_MAX = 384
"""Of a label's value in a block, where a character takes up to 12."""
LABEL_END_BYTES = 22
"""What stands for the rest of one that was cut."""

END = "_end"
"""The name of what is not shown: how far the partition of a row can be read. The lag of groups in
seconds is made of it."""

AGE = "_age"
"""In front of it, for how long the newest record of that partition has been there, in seconds."""

Value: TypeAlias = int | float | list[float] | None
Row: TypeAlias = Sequence[str | Value]


class Block(NamedTuple):
    """See the module."""

    labels: Sequence[str]
    names: Sequence[str]
    rows: Sequence[Row]
    data: bytes = b""


def label(text: str) -> str:
    """A name that clients choose, as the value of a label: one that takes more than
    `LABEL_BYTES_MAX` is cut, and a hash tells it from others. So what somebody is called cannot
    make a block, or an answer, larger than is sent."""
    if len(text) <= LABEL_BYTES_MAX and len(json.dumps(text)) <= LABEL_BYTES_MAX:
        return text
    import hashlib  # few have such names

    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
    kept = text[: LABEL_BYTES_MAX - LABEL_END_BYTES]
    while len(json.dumps(kept)) > LABEL_BYTES_MAX - LABEL_END_BYTES:
        kept = kept[: len(kept) // 2]
    return f"{kept}\N{HORIZONTAL ELLIPSIS}{digest}"


_json = json.JSONEncoder(separators=(",", ":")).encode  # `dumps` makes one each time


def encoded(
    labels: Sequence[str], names: Sequence[str], rows: Sequence[Row], data: bytes = b""
) -> bytes:
    """One block as bytes."""
    if data:
        return b"%b\n%b" % (_json([labels, names, rows, len(data)]).encode(), data)
    return _json([labels, names, rows]).encode() + b"\n"


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


def decoded(told: bytes) -> Iterator[Block]:
    """The blocks that `encoded` made, one after the other. ValueError for anything else."""
    at = 0
    while at < len(told):
        end = told.index(b"\n", at)
        labels, names, rows, *sizes = json.loads(told[at:end])
        at = end + 1 + sum(sizes)
        if at > len(told):
            raise ValueError(f"a block of {sizes} bytes has {len(told) - end - 1}")
        yield Block(labels, names, rows, told[end + 1 : at])
