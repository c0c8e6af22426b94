"""An Avro schema as spark-avro is given it: one text, in an envelope that tells what failed.

`from_avro` takes one schema without others beside it, so that the types of references are put where
they are used first, under their full names. And where it cannot make a value it answers a row of
nulls, as a value of nulls would be. The envelope is a record of the value and one byte more:

    value   the schema's
    end     boolean; null only where reading failed

A record's fields follow each other without anything between them: a value with a byte of 0 behind
it is such a record. Source: the Avro specification, "Names" and "Binary Encoding".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kwire.spark.column_types import MisfitError

END = b"\0"
NAMED = ("record", "error", "enum", "fixed")
# What a reader of bytes by their own schema does not need, and Java looks at closely.
_LEFT_OUT = ("default", "doc", "aliases", "order")
_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


def envelope(text: str, references: Sequence[str] = ()) -> str:
    """The envelope of a schema; `references` are texts whose types it names. Raises MisfitError."""
    try:
        whole = _Whole([json.loads(reference) for reference in references])
        value = whole.schema(json.loads(text), "")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise MisfitError(f"the schema cannot be read: {str(error)[:100]}") from None
    fields = [{"name": "value", "type": value}, {"name": "end", "type": "boolean"}]
    return json.dumps({"type": "record", "name": "kwire_envelope", "fields": fields})


class _Whole:
    """Schemas with full names, in which a type is defined where it is used first."""

    def __init__(self, references: Sequence[Any]) -> None:
        self._known: dict[str, tuple[Any, str]] = {}
        self._defined: set[str] = set()
        for reference in references:
            self._find(reference, "")

    def _find(self, schema: Any, space: str) -> None:
        """Note the types that a schema defines, and in which namespace they stand."""
        if isinstance(schema, list):
            for branch in schema:
                self._find(branch, space)
        if not isinstance(schema, dict):
            return
        if schema.get("type") in NAMED and isinstance(schema.get("name"), str):
            name = _full(schema, space)
            self._known.setdefault(name, (schema, space))
            space = name.rpartition(".")[0]
            for field in schema.get("fields", []):
                self._find(field.get("type") if isinstance(field, dict) else None, space)
            return
        for part in ("type", "items", "values"):
            self._find(schema.get(part), space)

    def schema(self, schema: Any, space: str) -> Any:
        if isinstance(schema, list):
            return [self.schema(branch, space) for branch in schema]
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVES else self._name(schema, space)
        if not isinstance(schema, dict):
            raise ValueError("no schema")
        kind = schema.get("type")
        if kind in NAMED:
            return self._definition(schema, space)
        if isinstance(kind, str) and kind not in (*_PRIMITIVES, "array", "map"):
            return self._name(kind, space)
        found = {name: part for name, part in schema.items() if name not in _LEFT_OUT}
        for part in ("type", "items", "values"):
            if isinstance(found.get(part), dict | list) or (part != "type" and part in found):
                found[part] = self.schema(found[part], space)
        return found

    def _name(self, name: str, space: str) -> Any:
        for full in (f"{space}.{name}" if space and "." not in name else name, name):
            if full in self._defined:
                return full
            if full in self._known:
                return self._definition(*self._known[full])
        raise ValueError(f"unknown type {name}")

    def _definition(self, schema: dict[str, Any], space: str) -> Any:
        name = _full(schema, space)
        if name in self._defined:
            return name
        self._defined.add(name)
        found = {part: value for part, value in schema.items() if part not in _LEFT_OUT}
        found |= {"name": name, "namespace": name.rpartition(".")[0]}
        if "fields" in schema:
            space = found["namespace"]
            found["fields"] = [
                {"name": field["name"], "type": self.schema(field["type"], space)}
                for field in schema["fields"]
                if isinstance(field, dict) and "name" in field and "type" in field
            ]
        return found


def _full(schema: dict[str, Any], space: str) -> str:
    name = str(schema.get("name", ""))
    own = str(schema.get("namespace", space) or "")
    return name if "." in name or not own else f"{own}.{name}"
