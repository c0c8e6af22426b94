"""JSON of users, read so that nothing of it is altered or lost without a word.

Python's reader takes the last of two equal names, makes an infinity of 1e400, and knows NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from kwire.json_numbers import SHOWN_CHARACTERS_MAX, finite, refused

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

DIGITS_MAX = 4300
"""Of an integer, as Python reads it."""


def load(text: bytes, *, number: Callable[[str], float] = finite) -> Json:
    """The value of a text; `number` reads those with a point or an exponent. ValueError, one line,
    for what is no JSON or would be altered; RecursionError for what nests too deep."""
    value: Json = json.loads(
        text,
        object_pairs_hook=_object,
        parse_float=number,
        parse_int=_integer,
        parse_constant=refused,
    )
    return value


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(
            f"the number {text[:SHOWN_CHARACTERS_MAX]}... has over {DIGITS_MAX} digits"
        )
    return int(text)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {json.dumps(twice)[:100]} is there twice in an object")
    return found
