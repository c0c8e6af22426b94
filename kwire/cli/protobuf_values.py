"""Messages of Protobuf schemas as protobuf's own JSON, and back."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict, Parse
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from kwire.cli import exact_json
from kwire.cli.exact_json import Json
from kwire.cli.protobuf_numbers import FLOATS, INTEGERS, Written, is_integer_text, why_refused
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
ANY = "google.protobuf.Any"
FLOAT_VALUE = "google.protobuf.FloatValue"
DURATION = "google.protobuf.Duration"
VALUE = "google.protobuf.Value"
NULL_VALUE = "google.protobuf.NullValue"
VALUES_OF_JSON = tuple(f"google.protobuf.{name}" for name in ("ListValue", "Struct", "Value"))
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value" for name in (*_NUMBERS, "Bool", "String", "Bytes")
)
_DURATION = re.compile(r"-?[0-9]+(?:\.[0-9]{1,9})?s")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)")
_FAILURES = (JsonError, DecodeError, EncodeError, ValueError, TypeError)


def encoded(schema: ProtobufSchema, text: bytes) -> bytes:
    """A message, the first of the schema. ClientError where the text is none of it."""
    first = next(iter(schema.descriptor.message_types_by_name.values()), None)
    if first is None:
        raise ClientError("not by its schema: the schema has no message")
    try:
        value = exact_json.load(text, number=Written)
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
        pool = schema.descriptor.pool
        told: Json = MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
        value = _with_whole_floats(message, told, pool)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except _FAILURES as error:
        raise ClientError(f"it has no JSON: {_line(error)}") from None


def _with_whole_floats(message: Message, told: Json, pool: DescriptorPool) -> Json:
    """The JSON of a message with floats that are integers as they are: the library shows eight
    digits of them, which is another number, and the largest one is too large for it to read."""
    kind = message.DESCRIPTOR.full_name
    if kind == FLOAT_VALUE:
        return _whole(getattr(message, "value"), told)  # noqa: B009
    if not isinstance(told, dict):
        return told
    if kind == ANY:
        of_type, data = str(getattr(message, "type_url")), bytes(getattr(message, "value"))  # noqa: B009
        if not of_type:
            return told
        held_type = pool.FindMessageTypeByName(of_type.rpartition("/")[2])
        held = GetMessageClass(held_type).FromString(data)
        if held.DESCRIPTOR.full_name in OF_THEIR_OWN:
            return {**told, "value": _with_whole_floats(held, told.get("value"), pool)}
        return _with_whole_floats(held, told, pool)
    if kind in OF_THEIR_OWN:
        return told
    found = dict(told)
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        inner = found[name]
        target = field.message_type
        if target is not None and target.GetOptions().map_entry:
            of_values = target.fields_by_name["value"]
            if isinstance(inner, dict):
                found[name] = {
                    shown: _of_field(of_values, value[key], inner[shown], pool)
                    for key, shown in zip(value, inner, strict=True)
                }
        elif isinstance(inner, list) and field.is_repeated:
            pairs = zip(value, inner, strict=True)
            found[name] = [_of_field(field, held, one, pool) for held, one in pairs]
        else:
            found[name] = _of_field(field, value, inner, pool)
    return found


def _of_field(
    field: FieldDescriptor, value: Message | float, told: Json, pool: DescriptorPool
) -> Json:
    if isinstance(value, Message):
        return _with_whole_floats(value, told, pool)
    return _whole(value, told) if field.type == FieldDescriptor.TYPE_FLOAT else told


def _whole(value: float, told: Json) -> Json:
    return value if isinstance(told, float) and value.is_integer() else told


def _check_objects(descriptor: Descriptor, value: Json, where: str) -> None:
    """What the library would take for something else: `[]` and `""` for a message without fields,
    numbers that a field rounds, text that is no base64."""
    kind = descriptor.full_name
    if kind in VALUES_OF_JSON:
        _check_numbers(value, where)
    elif kind in WRAPPERS:
        _check_scalar(descriptor.fields_by_name["value"], value, where)
    elif kind == DURATION:
        if isinstance(value, str) and _DURATION.fullmatch(value) is None:
            raise _refused(where, value, "no duration")
    elif kind == ANY:
        _check_any(descriptor.file.pool, value, where)
    if kind in OF_THEIR_OWN:
        return
    if not isinstance(value, dict):
        raise _refused(where, value, f"no {kind}")
    fields = {field.json_name: field for field in descriptor.fields} | dict(
        descriptor.fields_by_name
    )
    for name, inner in value.items():
        field = fields.get(name)
        if field is None:
            continue  # unknown names are for the library to refuse
        path = f"{where}.{name}"
        target = field.message_type
        if target is not None and target.GetOptions().map_entry:
            _check_map(target, inner, path)
        elif field.is_repeated:
            for at, item in enumerate(inner if isinstance(inner, list) else ()):
                _check_field(field, item, f"{path}[{at}]")
        else:
            _check_field(field, inner, path)


def _check_map(entry: Descriptor, value: Json, where: str) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        raise _refused(where, value, "no object, which a map is")
    of_key, of_value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    of_enum, of_message = of_value.enum_type, of_value.message_type
    has_null = (of_enum is not None and of_enum.full_name == NULL_VALUE) or (
        of_message is not None and of_message.full_name == VALUE
    )
    for key, item in value.items():
        if of_key.type in INTEGERS and not is_integer_text(key):
            raise _refused(where, key, "no integer, which the keys of this map are")
        if item is None and not has_null:
            raise _refused(f"{where}.{key}", item, "no value of a map")
        _check_field(of_value, item, f"{where}.{key}")


def _check_any(pool: DescriptorPool, value: Json, where: str) -> None:
    if not isinstance(value, dict):
        raise _refused(where, value, f"no {ANY}")
    if not value:
        return
    name = value.get("@type")
    if not isinstance(name, str):
        raise _refused(f"{where}.@type", name, "no name of a type")
    try:
        descriptor = pool.FindMessageTypeByName(name.rpartition("/")[2])
    except KeyError:
        return  # for the library to refuse
    inner: Json = {name: one for name, one in value.items() if name != "@type"}
    if descriptor.full_name in OF_THEIR_OWN:
        inner, where = value.get("value"), f"{where}.value"
    _check_objects(descriptor, inner, where)


def _check_field(field: FieldDescriptor, value: Json, where: str) -> None:
    if value is None:
        return
    if field.message_type is None:
        _check_scalar(field, value, where)
    else:
        _check_objects(field.message_type, value, where)


def _check_scalar(field: FieldDescriptor, value: Json, where: str) -> None:
    """Numbers may be text in the JSON of protobuf."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        if isinstance(value, str) and not _is_base64(value):
            raise _refused(where, value, "no base64")
    elif field.type in FLOATS or field.type in INTEGERS:
        if isinstance(value, str | int | float):
            why = why_refused(field.type, value)
            if why is not None:
                raise _refused(where, value, why)
    elif field.type == FieldDescriptor.TYPE_ENUM:
        of_enum = field.enum_type
        is_name = isinstance(value, str) and not is_integer_text(value)
        if is_name and value not in of_enum.values_by_name:
            raise _refused(where, value, f"no value of {of_enum.full_name}")


def _check_numbers(value: Json, where: str) -> None:
    """Of google.protobuf.Value, whose numbers are doubles."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_numbers(inner, f"{where}.{name}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _check_numbers(inner, f"{where}[{at}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        why = why_refused(FieldDescriptor.TYPE_DOUBLE, value)
        if why is not None:
            raise _refused(where, value, why)


def _is_base64(text: str) -> bool:
    """Of either alphabet, with its padding or without; the library passes over all else."""
    digits = text.rstrip("=")
    padding = len(text) - len(digits)
    is_whole = padding in (0, -len(digits) % 4) and len(digits) % 4 != 1
    return is_whole and _BASE64.fullmatch(digits) is not None


def _refused(where: str, value: Json, what: str) -> ClientError:
    shown = value.text if isinstance(value, Written) else json.dumps(value)
    return ClientError(f"not by its schema: {where}: {shown[:100]} is {what}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
