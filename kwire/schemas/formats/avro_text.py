"""The canonical text of an Avro schema: as `Schema.toString()` of Avro for Java prints it.

Attributes stand in one order (type, name, namespace, doc, fields or symbols or items or values or
size, default, then everything else as it was, aliases last); a namespace is printed where it is
not that of the type around; a type that was defined is its name. Source: the Avro specification
(names, aliases), Apache Avro's printed schemas.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.schemas.formats.json_text import Json
from kwire.schemas.formats.parsed import InvalidSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "error", "enum", "fixed")
# What is printed in a place of its own, so never among the other attributes.
_OWN = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "error": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
    "field": ("name", "type", "doc", "default", "order", "aliases"),
}
_CONTENT = {"enum": "symbols", "fixed": "size"}
SIZE_MAX = 2**31 - 1
"""Of a fixed: Avro for Java has it as an int, and reads no schema with more."""


def split_name(name: str, namespace: str | None, around: str | None) -> tuple[str, str | None]:
    """(name, its namespace or None) by the rules of Avro: a dotted name has its own."""
    if "." in name:
        namespace, _, name = name.rpartition(".")
    elif namespace is None:
        namespace = around
    return name, namespace or None


def full(name: str, space: str | None) -> str:
    return f"{space}.{name}" if space else name


def text_of(value: Json, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidSchema(f"{what} must be a string")
    return value


@dataclass
class AvroPrinter:
    """Prints one schema after the other; it knows the names that those before have defined.

    `is_normalized` sorts the other attributes and leaves nothing to the order of the text.
    `is_for_library` is how the Apache Avro library compares schemas: it knows no errors, which are
    records, and takes an alias for the full name of a type.
    """

    is_normalized: bool = False
    is_for_library: bool = False
    known: dict[str, None] = field(default_factory=dict)

    def print(self, schema: Json, around: str | None = None) -> Json:
        if isinstance(schema, list):
            return [self.print(branch, around) for branch in schema]
        if isinstance(schema, str):
            return self._reference(schema, around)
        if not isinstance(schema, dict):
            raise InvalidSchema("An Avro schema is a string, an object or an array")
        kind = schema.get("type")
        if kind is None:
            raise InvalidSchema("An Avro schema has no type")
        if isinstance(kind, (dict, list)):
            if len(schema) == 1:
                return self.print(kind, around)
            raise InvalidSchema("The type of an Avro schema must be a string")
        kind = text_of(kind, "The type of an Avro schema")
        if kind in NAMED:
            return self._named(schema, kind, around)
        if kind in PRIMITIVES:
            others = self._others(schema, ("type",))
            return {"type": kind, **others} if others else kind
        if kind in ("array", "map"):
            content = "items" if kind == "array" else "values"
            if content not in schema:
                raise InvalidSchema(f"An Avro {kind} has no {content}")
            printed = self.print(schema[content], around)
            return {"type": kind, content: printed, **self._others(schema, _OWN[kind])}
        return self._reference(kind, around)

    def _reference(self, name: str, around: str | None) -> Json:
        if name in PRIMITIVES:
            return name
        short, space = split_name(name, None, around)
        if full(short, space) not in self.known:
            if short not in self.known or "." in name:
                raise InvalidSchema(f"Undefined name: {name}")
            space = None
        return self._qualified(short, space, around)

    def _qualified(self, name: str, space: str | None, around: str | None) -> str:
        return name if space is None or space == around else full(name, space)

    def _named(self, schema: dict[str, Json], kind: str, around: str | None) -> Json:
        name = text_of(schema.get("name"), f"The name of an Avro {kind}")
        given = schema.get("namespace")
        if given is not None:
            given = text_of(given, f"The namespace of {name}")
        name, space = split_name(name, given, around)
        if full(name, space) in self.known:
            raise InvalidSchema(f"Can't redefine: {full(name, space)}")
        self.known[full(name, space)] = None
        is_record = self.is_for_library and kind == "error"
        printed: dict[str, Json] = {"type": "record" if is_record else kind, "name": name}
        if space != around:
            printed["namespace"] = space or ""
        if isinstance(schema.get("doc"), str):
            printed["doc"] = schema["doc"]
        if kind in _CONTENT:
            if _CONTENT[kind] not in schema:
                raise InvalidSchema(f"The {kind} {name} has no {_CONTENT[kind]}")
            size = schema[_CONTENT[kind]]
            if kind == "fixed" and isinstance(size, int) and size > SIZE_MAX:
                raise InvalidSchema(f"The size of the fixed {name} is over {SIZE_MAX}")
            printed[_CONTENT[kind]] = schema[_CONTENT[kind]]
            if kind == "enum" and schema.get("default") is not None:
                printed["default"] = schema["default"]
        else:
            printed["fields"] = self._fields(schema.get("fields"), name, space)
        printed.update(self._others(schema, _OWN[kind]))
        aliases = schema.get("aliases")
        if aliases:
            if not isinstance(aliases, list):
                raise InvalidSchema(f"The aliases of {name} must be an array of strings")
            printed["aliases"] = self._aliases(aliases, name, space)
        return printed

    def _aliases(self, aliases: list[Json], name: str, space: str | None) -> list[Json]:
        found: dict[str, None] = {}
        for alias in aliases:
            short, its_space = split_name(text_of(alias, f"An alias of {name}"), None, space)
            around = None if self.is_for_library else space
            found[self._qualified(short, its_space, around)] = None
        return list(found)

    def _fields(self, fields: Json, record: str, space: str | None) -> list[Json]:
        if not isinstance(fields, list):
            raise InvalidSchema(f"The fields of {record} must be an array")
        printed: list[Json] = []
        for item in fields:
            if not isinstance(item, dict):
                raise InvalidSchema(f"A field of {record} is no object")
            name = text_of(item.get("name"), f"The name of a field of {record}")
            if "type" not in item:
                raise InvalidSchema(f"The field {name} of {record} has no type")
            one: dict[str, Json] = {"name": name, "type": self.print(item["type"], space)}
            if isinstance(item.get("doc"), str):
                one["doc"] = item["doc"]
            if "default" in item:
                one["default"] = item["default"]
            order = item.get("order")
            if order is not None:
                order = text_of(order, f"The order of the field {name}").lower()
                if order not in ("ascending", "descending", "ignore"):
                    raise InvalidSchema(f"The field {name} of {record} has the order {order}")
                if order != "ascending":
                    one["order"] = order
            aliases = item.get("aliases")
            if aliases:
                if not isinstance(aliases, list):
                    raise InvalidSchema(f"The aliases of {name} must be an array of strings")
                one["aliases"] = [text_of(alias, f"An alias of {name}") for alias in aliases]
            one.update(self._others(item, _OWN["field"]))
            printed.append(one)
        return printed

    def _others(self, schema: dict[str, Json], own: tuple[str, ...]) -> dict[str, Json]:
        others = {key: value for key, value in schema.items() if key not in own}
        return dict(sorted(others.items())) if self.is_normalized else others
