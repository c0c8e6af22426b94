"""Avro schemas, read by the Apache Avro library.

Source: the Avro specification 1.12. Defaults are checked, as registries do for what is registered.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.schemas.formats.avro_text import AvroPrinter
from kwire.schemas.formats.json_text import Json, dump, load
from kwire.schemas.formats.parsed import InvalidSchema, Parsed, all_references

if TYPE_CHECKING:
    import avro.schema

INTS = {"int": 31, "long": 63}


@dataclass(frozen=True, kw_only=True)
class AvroSchema(Parsed):
    root: avro.schema.Schema


def parse(text: str, references: Mapping[str, Parsed]) -> AvroSchema:
    """Raises InvalidSchema for every text that is no Avro schema with these references."""
    import avro.name
    import avro.schema

    if not text.lstrip().startswith(("{", "[", '"')):
        text = f'"{text.strip()}"'  # the name of a type alone
    value = load(text)
    printer, normal = AvroPrinter(), AvroPrinter(is_normalized=True)
    library = AvroPrinter(is_for_library=True)
    names = avro.name.Names()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # logical types that Avro says to ignore
            for name, reference in all_references(references).items():
                if not isinstance(reference, AvroSchema):
                    raise InvalidSchema(f"The reference {name} is no Avro schema")
                told = load(reference.canonical)
                printer.print(told)
                normal.print(told)
                avro.schema.make_avsc_object(library.print(told), names)
            printed = printer.print(value)
            normalized = dump(normal.print(value))
            if isinstance(printed, str) and names.has_name(printed):
                root = names.get_name(printed)
            else:
                root = avro.schema.make_avsc_object(library.print(value), names)
            check_defaults(root)
    except InvalidSchema:
        raise
    except RecursionError:
        raise InvalidSchema("The schema nests too deep") from None
    except Exception as error:
        # The library raises what it meets: KeyError, TypeError and its own.
        raise InvalidSchema(str(error) or type(error).__name__) from None
    return AvroSchema(
        schema_type="AVRO",
        canonical=dump(printed),
        normalized=normalized,
        record_name=getattr(root, "fullname", None),
        references=references,
        root=root,
    )


def check_defaults(root: avro.schema.Schema) -> None:
    known: dict[str, None] = {}
    ahead = [root]
    while ahead:
        schema = ahead.pop()
        if schema.type in ("record", "error"):
            if schema.fullname in known:
                continue
            known[schema.fullname] = None
            for field in schema.fields:
                if field.has_default and not is_value(field.type, field.default):
                    raise InvalidSchema(
                        f"Invalid default for field {field.name}: {dump(field.default)[:200]} "
                        f"is no {field.type.type}"
                    )
                ahead.append(field.type)
        elif schema.type == "array":
            ahead.append(schema.items)
        elif schema.type == "map":
            ahead.append(schema.values)
        elif schema.type == "union":
            ahead += schema.schemas


def is_value(schema: avro.schema.Schema, value: Json) -> bool:
    """Whether a default is one of its type: bytes are text, a union's may be of any branch."""
    kind = schema.type
    if kind in INTS:
        limit = 1 << INTS[kind]
        return type(value) is int and -limit <= value < limit
    if kind in ("float", "double"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "array":
        return isinstance(value, list) and all(is_value(schema.items, item) for item in value)
    if kind == "map":
        return isinstance(value, dict) and all(is_value(schema.values, x) for x in value.values())
    if kind == "union":
        return any(is_value(branch, value) for branch in schema.schemas)
    if kind in ("record", "error"):
        return isinstance(value, dict) and all(
            is_value(field.type, value[field.name]) if field.name in value else field.has_default
            for field in schema.fields
        )
    kinds = {"null": type(None), "boolean": bool}
    return isinstance(value, kinds.get(kind, str))
