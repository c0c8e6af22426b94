"""Types of decoded columns: as Spark and Delta write them, what a table takes, how they grow.

A type is the name of an atomic one (`bigint` is `long` here, as in Delta's `schemaString`), or one
of Struct, Array and Map. `usable` makes of a schema's type one that Parquet and Delta can hold,
`merged` adds to a table's type what a newer schema has more. Both raise MisfitError with the place
and the reason.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

DEPTH_MAX = 60
FIELDS_MAX = 5_000
# Delta refuses these in the name of a column, unless a table maps names.
_BAD_NAME = re.compile(r"[ ,;{}()\n\t=]")
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)\Z")
# What a column of another type holds without loss, by the type of a value.
_WIDER: Mapping[str, tuple[str, ...]] = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
}
# Delta keeps these only in tables that other writers have to know of.
_INSTEAD = {"timestamp_ntz": "timestamp"}
_ATOMIC = frozenset(
    ("string", "binary", "boolean", "byte", "short", "integer", "long", "float", "double")
) | {"date", "timestamp"}
VOID = "void"


class MisfitError(ValueError):
    """What a column cannot hold, in one line."""


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    type: Type


@dataclasses.dataclass(frozen=True)
class Struct:
    """Fields in their order."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """By its name; Spark does not look at upper and lower case."""
        low = name.lower()
        return next((field for field in self.fields if field.name.lower() == low), None)


@dataclasses.dataclass(frozen=True)
class Array:
    element: Type


@dataclasses.dataclass(frozen=True)
class Map:
    key: Type
    value: Type


Type = str | Struct | Array | Map


def from_json(data: Any) -> Type:
    """A type of Spark's JSON (`DataType.jsonValue()`, or of Delta's `schemaString`)."""
    if isinstance(data, str):
        return data
    kind = data["type"]
    if kind == "struct":
        return Struct(tuple(Field(f["name"], from_json(f["type"])) for f in data["fields"]))
    if kind == "array":
        return Array(from_json(data["elementType"]))
    if kind == "map":
        return Map(from_json(data["keyType"]), from_json(data["valueType"]))
    return str(kind)


def to_json(type_: Type) -> Any:
    """The reverse of `from_json`; everything may be null."""
    if isinstance(type_, Struct):
        fields = [
            {"name": field.name, "type": to_json(field.type), "nullable": True, "metadata": {}}
            for field in type_.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(type_, Array):
        element = to_json(type_.element)
        return {"type": "array", "elementType": element, "containsNull": True}
    if isinstance(type_, Map):
        key, value = to_json(type_.key), to_json(type_.value)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return type_


def told(type_: Type) -> str:
    """A type in a word or two.

    >>> told(Array("long"))
    'a list'
    """
    if isinstance(type_, Struct):
        return "a struct"
    if isinstance(type_, Array):
        return "a list"
    return "a map" if isinstance(type_, Map) else type_


def usable(type_: Type, path: str) -> Type:
    """The type without what has no values: fields of nulls, structs without fields. VOID where
    nothing is left. `path` is where it is, for reasons."""
    left = [FIELDS_MAX]
    return _usable(type_, path, 0, left)


def _usable(type_: Type, path: str, depth: int, left: list[int]) -> Type:
    left[0] -= 1
    if left[0] < 0:
        raise MisfitError(f"it has more than {FIELDS_MAX:,} fields")
    if depth > DEPTH_MAX:
        raise MisfitError(f"{path} is nested deeper than {DEPTH_MAX}")
    if isinstance(type_, Struct):
        return _usable_struct(type_, path, depth, left)
    if isinstance(type_, Array):
        element = _usable(type_.element, f"{path}[]", depth + 1, left)
        return VOID if element == VOID else Array(element)
    if isinstance(type_, Map):
        key = _usable(type_.key, f"{path}[]", depth + 1, left)
        value = _usable(type_.value, f"{path}[]", depth + 1, left)
        return VOID if VOID in (key, value) else Map(key, value)
    type_ = _INSTEAD.get(type_, type_)
    if type_ != VOID and type_ not in _ATOMIC and not _DECIMAL.match(type_):
        raise MisfitError(f"{path} is {type_}, of which Delta has no columns")
    return type_


def _usable_struct(struct: Struct, path: str, depth: int, left: list[int]) -> Type:
    fields: dict[str, Field] = {}
    for field in struct.fields:
        place = f"{path}.{field.name}"
        if not field.name or _BAD_NAME.search(field.name):
            raise MisfitError(f"{place}: a column cannot have that name")
        found = _usable(field.type, place, depth + 1, left)
        if (other := fields.get(field.name.lower())) is not None:
            raise MisfitError(f"{place} and {other.name} differ in upper and lower case only")
        if found != VOID:
            fields[field.name.lower()] = Field(field.name, found)
    return Struct(tuple(fields.values())) if fields else VOID


def merged(have: Type, new: Type, path: str) -> Type:
    """A table's type that holds values of `new` too: fields that it has not come last.

    Both are usable ones. Raises MisfitError where one place has two types."""
    if have == new:
        return have
    if isinstance(have, Struct) and isinstance(new, Struct):
        fields = list(have.fields)
        for field in new.fields:
            known = have.field(field.name)
            if known is None:
                fields.append(field)
                continue
            grown = merged(known.type, field.type, f"{path}.{field.name}")
            fields[have.fields.index(known)] = Field(known.name, grown)
        return Struct(tuple(fields))
    if isinstance(have, Array) and isinstance(new, Array):
        return Array(merged(have.element, new.element, f"{path}[]"))
    if isinstance(have, Map) and isinstance(new, Map) and have.key == new.key:
        return Map(have.key, merged(have.value, new.value, f"{path}[]"))
    if isinstance(have, str) and isinstance(new, str) and _holds(have, new):
        return have
    raise MisfitError(f"{path} is {told(new)}, the table has {told(have)}")


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one atomic type is one of the other."""
    if wide in _WIDER.get(narrow, ()):
        return True
    large, small = _DECIMAL.match(wide), _DECIMAL.match(narrow)
    if large is None or small is None:
        return False
    scale, digits = int(large[2]), int(large[1]) - int(large[2])
    return int(small[2]) <= scale and int(small[1]) - int(small[2]) <= digits


def evolved(schema: Mapping[str, Any], frame: Mapping[str, Any]) -> dict[str, Any] | None:
    """A table's schema (Delta's JSON) that holds what a frame (Spark's JSON) has more; None where
    it holds all. Raises MisfitError."""
    fields = {field["name"].lower(): dict(field) for field in schema["fields"]}
    changed = False
    for field in frame["fields"]:
        name, type_ = field["name"], from_json(field["type"])
        known = fields.get(name.lower())
        have = None if known is None else from_json(known["type"])
        grown = type_ if have is None else merged(have, type_, name)
        if grown == have:
            continue
        changed = True
        fields[name.lower()] = {
            **(known or {"name": name, "nullable": True, "metadata": {}}),
            "type": to_json(grown),
        }
    return {**schema, "fields": list(fields.values())} if changed else None
