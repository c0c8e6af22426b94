"""JSON with types: what a body or a record may be, and how it is read and written."""

from __future__ import annotations

import json
from typing import TypeAlias

from kwire.json_numbers import refused

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

DEPTH_MAX = 100
"""Of lists and objects in each other. The text of a schema is a string here."""


def read_json(data: bytes) -> Json:
    """What a text says; ValueError, one line: no JSON, too deep, or what no text can hold."""
    try:
        found: Json = json.loads(data, parse_constant=refused)
        _check_depth(found)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError(f"more than {DEPTH_MAX} levels deep") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    return found


def written(value: Json) -> bytes:
    """The shortest text of it, as records have it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise RecursionError


def texts(value: Json) -> dict[str, str] | None:
    """An object whose values are texts; None for anything else."""
    if not isinstance(value, dict):
        return None
    found = {name: text for name, text in value.items() if isinstance(text, str)}
    return found if len(found) == len(value) else None
