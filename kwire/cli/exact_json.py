"""JSON of users, read so that nothing of it is altered or lost without a word.

Python's reader takes the last of two equal names, makes an infinity of 1e400, and knows NaN.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from kwire.json_numbers import finite, refused

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def load(text: bytes) -> Json:
    """The value of a text. ValueError, one line, for what is no JSON or would be altered;
    RecursionError for what nests too deep."""
    value: Json = json.loads(
        text, object_pairs_hook=_object, parse_float=finite, parse_constant=refused
    )
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {json.dumps(twice)[:100]} is there twice in an object")
    return found
