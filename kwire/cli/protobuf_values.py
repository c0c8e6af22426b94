"""Messages of Protobuf schemas as protobuf's own JSON, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict, Parse
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from kwire.cli import exact_json
from kwire.cli.exact_json import Json
from kwire.client.errors import ClientError
from kwire.schemas.formats.protobuf import ProtobufSchema
from kwire.schemas.validation.message_indexes import read_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_NUMBERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32")
OF_THEIR_OWN = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"),
        *(f"{name}Value" for name in (*_NUMBERS, "Bool", "String", "Bytes")),
    )
)
"""Messages whose JSON is not an object of their fields."""
_FAILURES = (JsonError, DecodeError, EncodeError, ValueError, TypeError)


def encoded(schema: ProtobufSchema, text: bytes) -> bytes:
    """A message, the first of the schema. ClientError where the text is none of it."""
    first = next(iter(schema.descriptor.message_types_by_name.values()), None)
    if first is None:
        raise ClientError("not by its schema: the schema has no message")
    try:
        value = exact_json.load(text)
    except ValueError as error:
        raise ClientError(f"it is no JSON: {error}") from None
    _check_objects(first, value, "$")
    try:
        message = Parse(text, GetMessageClass(first)(), descriptor_pool=schema.descriptor.pool)
    except _FAILURES as error:
        raise ClientError(f"not by its schema: {_line(error)}") from None
    missing = message.FindInitializationErrors()
    if missing:
        raise ClientError(f"not by its schema: the field {missing[0]} is missing")
    try:
        return bytes(message.SerializeToString(deterministic=True))
    except _FAILURES as error:
        raise ClientError(f"not by its schema: {_line(error)}") from None


def shown(schema: ProtobufSchema, data: bytes, start: int) -> bytes:
    """The JSON of a message. ClientError where it has none; UndecodableError."""
    found = read_indexes(data, start)
    descriptor = found.message(list(schema.descriptor.message_types_by_name.values()))
    try:
        message = GetMessageClass(descriptor).FromString(data[found.end :])
        value = MessageToDict(
            message, preserving_proto_field_name=True, descriptor_pool=schema.descriptor.pool
        )
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except _FAILURES as error:
        raise ClientError(f"it has no JSON: {_line(error)}") from None


def _check_objects(descriptor: Descriptor, value: Json, where: str) -> None:
    """The library takes `[]` and `""` for a message without fields."""
    if descriptor.full_name in OF_THEIR_OWN:
        return
    if not isinstance(value, dict):
        told = json.dumps(value)[:100]
        raise ClientError(f"not by its schema: {where}: {told} is no {descriptor.full_name}")
    fields = {field.json_name: field for field in descriptor.fields} | dict(
        descriptor.fields_by_name
    )
    for name, inner in value.items():
        field = fields.get(name)
        target = None if field is None else field.message_type
        if target is None or inner is None:
            continue  # unknown names are for the library to refuse
        path = f"{where}.{name}"
        if target.GetOptions().map_entry:
            target = target.fields_by_name["value"].message_type
            if target is not None and isinstance(inner, dict):
                for key, item in inner.items():
                    _check_objects(target, item, f"{path}.{key}")
        elif isinstance(inner, list) and field is not None and field.is_repeated:
            for at, item in enumerate(inner):
                _check_objects(target, item, f"{path}[{at}]")
        elif field is not None and not field.is_repeated:
            _check_objects(target, inner, path)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
