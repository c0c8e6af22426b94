"""JSON of users, read so that nothing of it is altered or lost without a word.

Python's reader takes the last of two equal names, makes an infinity of 1e400, and knows NaN.
"""

from __future__ import annotations

import json
import math
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def load(text: bytes) -> Json:
    """The value of a text. ValueError, one line, for what is no JSON or would be altered;
    RecursionError for what nests too deep."""
    value: Json = json.loads(
        text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse
    )
    return value


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {json.dumps(twice)[:100]} is there twice in an object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:100]} is too large")
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
