"""Which value of a message cannot be encoded: for the error's text, once encoding has failed."""

from __future__ import annotations

from struct import Struct as PackStruct
from struct import error as PackError
from typing import Any

from kwire.protocol import schema
from kwire.protocol.budget import STRING_SIZE_BYTES_MAX
from kwire.protocol.source import FORMATS

__all__ = ["describe_fault"]

_SHOWN_MAX = 60


def describe_fault(message: Any, version: int) -> str | None:
    """`topics[0].partitions[2].fetch_offset is 'x', not an int64`, or None when all is well."""
    return _in_struct(message, message.SCHEMA.root, version, "")


def _in_struct(value: Any, struct: schema.Struct, version: int, path: str) -> str | None:
    for field in struct.fields:
        if not schema.within(version, field.versions):
            continue
        name = f"{path}{field.name}"
        try:
            held = getattr(value, field.name)
        except AttributeError:
            return f"{path[:-1] or 'the message'} is {_shown(value)}, not a {struct.name}"
        if held is None:
            if schema.within(version, field.nullable):
                continue
            return f"{name} is null"
        fault = _in_field(held, field, version, name)
        if fault is not None:
            return fault
    return None


def _in_field(held: Any, field: schema.Field, version: int, name: str) -> str | None:
    if not field.is_array:
        return _in_value(held, field, version, name)
    try:
        items = list(held)
    except TypeError:
        return f"{name} is {_shown(held)}, not a list"
    for index, item in enumerate(items):
        fault = _in_value(item, field, version, f"{name}[{index}]")
        if fault is not None:
            return fault
    return None


def _in_value(value: Any, field: schema.Field, version: int, name: str) -> str | None:
    if field.struct is not None:
        return _in_struct(value, field.struct, version, f"{name}.")
    wrong = f"{name} is {_shown(value)}, not of type {field.type}"
    try:
        if field.type == "string":
            too_long = len(value.encode()) > STRING_SIZE_BYTES_MAX
            return f"{name} is too long" if too_long else None
        if field.type in ("bytes", "records"):
            pieces = value if isinstance(value, list) else [value]
            return wrong if any(memoryview(piece).itemsize != 1 for piece in pieces) else None
        if field.type == "uuid":
            return wrong if len(value) != 16 else None
        PackStruct(">" + FORMATS[field.type]).pack(value)
    except (AttributeError, PackError, TypeError, UnicodeError):
        return wrong
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
