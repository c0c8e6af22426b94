"""JSON values by a JSON Schema: the type of their column, and whether one fits it.

    object      its `properties` a struct; without any and with `additionalProperties` a map
    array       of `items`
    integer     long; number double; boolean; string
    null        beside one other type: that one
    all else    the JSON as text: several types, no type, tuples, what contains itself

What a schema asks beyond types (`required`, `pattern`, ranges) is not asked of a record here: it
was, or was not, when the record was published. Source: JSON Schema 2020-12 and draft 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kwire.spark.column_types import Array, Field, Map, MisfitError, Struct, Type, merged

DEPTH_MAX = 40
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
TEXT = "string"
_ATOMIC = {"integer": "long", "number": "double", "boolean": "boolean", "string": TEXT}
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")


def type_of(text: str, references: Mapping[str, str]) -> Type:
    """The type of a schema's values; `references` are the schemas it names, by `$ref`. Raises
    MisfitError for a text that is no JSON Schema."""
    try:
        documents = {name: json.loads(found) for name, found in references.items()}
        root = json.loads(text)
    except (ValueError, RecursionError):
        raise MisfitError("the schema is no JSON") from None
    if not isinstance(root, dict | bool):
        raise MisfitError("the schema is no JSON Schema")
    return _Reader(documents).type_of(root, root, ())


class _Reader:
    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def type_of(self, schema: Any, root: Any, above: tuple[Any, ...]) -> Type:
        """Of a part of the document `root`; `above` are the parts that it lies in."""
        if not isinstance(schema, dict) or len(above) > DEPTH_MAX:
            return TEXT
        if any(part is schema for part in above):
            return TEXT
        above = (*above, schema)
        if isinstance(schema.get("$ref"), str):
            found, root = self._resolved(schema["$ref"], root)
            return self.type_of(found, root, above)
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list):
                branches = [branch for branch in schema[name] if branch != {"type": "null"}]
                return self.type_of(branches[0], root, above) if len(branches) == 1 else TEXT
        if isinstance(schema.get("allOf"), list):
            return self._all_of(schema, root, above)
        return self._by_kind(schema, root, above)

    def _all_of(self, schema: dict[str, Any], root: Any, above: tuple[Any, ...]) -> Type:
        own = {name: part for name, part in schema.items() if name != "allOf"}
        parts = [*schema["allOf"], *([own] if "properties" in own else [])]
        found: Type = Struct(())
        for part in parts:
            type_ = self.type_of(part, root, above)
            if not isinstance(type_, Struct):
                return type_ if len(parts) == 1 else TEXT
            try:
                found = merged(found, type_, "")
            except MisfitError:
                return TEXT
        return found

    def _by_kind(self, schema: dict[str, Any], root: Any, above: tuple[Any, ...]) -> Type:
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [name for name in kind if name != "null"]
            if sorted(map(str, kinds)) == ["integer", "number"]:
                kinds = ["number"]
            kind = kinds[0] if len(kinds) == 1 else None
        properties = schema.get("properties")
        if kind is None and isinstance(properties, dict):
            kind = "object"
        if kind == "object":
            if isinstance(properties, dict) and properties:
                found = properties.items()
                return Struct(tuple(Field(n, self.type_of(p, root, above)) for n, p in found))
            more = schema.get("additionalProperties")
            return Map(TEXT, self.type_of(more, root, above)) if isinstance(more, dict) else TEXT
        if kind == "array":
            items = schema.get("items")
            return Array(self.type_of(items, root, above)) if isinstance(items, dict) else TEXT
        return _ATOMIC.get(str(kind), TEXT)

    def _resolved(self, reference: str, root: Any) -> tuple[Any, Any]:
        """The part that is referred to, and its document; (None, ...) for one that is unknown."""
        name, _, pointer = reference.partition("#")
        if name:
            root = self._documents.get(name)
        found = root
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or step not in found:
                return None, root
            found = found[step]
        return found, root


def parse(text: str) -> Any:
    """A JSON text, with numbers only as exact as `check` needs them; raises ValueError and
    RecursionError."""
    return json.loads(text, parse_constant=_refuse, parse_int=_whole, parse_float=_parsed)


def _whole(digits: str) -> int:
    # Python refuses to read those of some thousand digits: any that is no long will do.
    return int(digits) if len(digits) <= 20 else 1 << 70


def _parsed(digits: str) -> float:
    return float(digits)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def check(value: Any, type_: Type, path: str = "") -> None:
    """MisfitError where a value is not of the type; null is of every one, and what a struct has no
    field for is left out of it."""
    if value is None or type_ == TEXT:
        return
    if isinstance(type_, Struct):
        _expect(isinstance(value, dict), value, "an object", path)
        for field in type_.fields:
            if field.name in value:
                check(value[field.name], field.type, f"{path}.{field.name}")
    elif isinstance(type_, Array):
        _expect(isinstance(value, list), value, "a list", path)
        for item in value:
            check(item, type_.element, f"{path}[]")
    elif isinstance(type_, Map):
        _expect(isinstance(value, dict), value, "an object", path)
        for item in value.values():
            check(item, type_.value, f"{path}[]")
    elif type_ == "boolean":
        _expect(isinstance(value, bool), value, "true or false", path)
    elif type_ == "long":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        _expect(is_whole and LONG_MIN <= value <= LONG_MAX, value, "a whole number", path)
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _expect(is_number, value, "a number", path)


def _expect(fits: bool, value: Any, what: str, path: str) -> None:
    if not fits:
        shown = _HALF_CHARACTER.sub("\ufffd", json.dumps(value, ensure_ascii=False))[:40]
        raise MisfitError(f"{path.lstrip('.') or 'the value'}: expected {what}, found {shown}")
