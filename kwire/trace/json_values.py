"""JSON as it is read and written, with types."""

from __future__ import annotations

import json
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]


def to_line(value: JsonObject) -> str:
    """One line, without its end, that changes no terminal."""
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return line if line.isprintable() else json.dumps(value, separators=(",", ":"))


def from_line(text: str) -> JsonObject:
    """The object of a line; ValueError for anything else."""
    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def text_of(value: JsonObject, name: str) -> str:
    """A field that is text; empty where there is none."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def number_of(value: JsonObject, name: str, default: int = 0) -> int:
    """A field that is a whole number; `default` where there is none."""
    found = value.get(name)
    return found if isinstance(found, int) else default


def objects_of(value: JsonObject, name: str) -> list[JsonObject]:
    """A field that is a list of objects; empty where there is none."""
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
