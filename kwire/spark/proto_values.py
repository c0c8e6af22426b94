"""Protobuf messages for columns: their types, and messages as JSON that Spark reads into them.

    int32, sint32, sfixed32        int         uint32, fixed32   bigint
    int64, sint64, sfixed64        bigint      uint64, fixed64   decimal(20,0)
    enum                           string, its name (a number that has none: that number)
    Timestamp                      timestamp   Duration          string, as Protobuf's JSON has it
    StringValue and its like       their value, null where there is none
    Struct, Value, ListValue       string, JSON
    map                            a map whose keys are text

A field without presence has its default where it is not set; others are null. What contains itself
is refused. Which message bytes are say the indexes before them (`message_indexes`).
Source: Protocol Buffers documentation, "ProtoJSON Format" and "Field Presence".
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kwire.schemas.formats import InvalidSchema, Parsed
from kwire.schemas.formats import parse as parse_schema
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.message_indexes import read_indexes
from kwire.spark.column_types import Array, Field, Map, MisfitError, Struct, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

# Numbers of types in descriptor.proto.
_TYPES: Mapping[int, Type] = {
    1: "double",
    2: "float",
    3: "long",
    4: "decimal(20,0)",
    5: "integer",
    6: "decimal(20,0)",
    7: "long",
    8: "boolean",
    9: "string",
    12: "binary",
    13: "long",
    14: "string",
    15: "integer",
    16: "long",
    17: "integer",
    18: "long",
}
_DOUBLE, _FLOAT, _BYTES, _ENUM = 1, 2, 12, 14
_MESSAGES = (10, 11)
_GOOGLE = "google.protobuf."
_WRAPPERS = tuple(
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_AS_JSON = tuple(_GOOGLE + name for name in ("Struct", "Value", "ListValue"))
_TIMESTAMP, _DURATION = _GOOGLE + "Timestamp", _GOOGLE + "Duration"

ToJson = Callable[[Any], Any]


class Messages:
    """The messages of a schema; MisfitError for a text that is none. `references` are the schemas
    it imports, by the path of the import, each behind those that it needs itself."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        from kwire.schemas.formats.protobuf import ProtobufSchema

        try:
            parsed: dict[str, Parsed] = {}
            for name, found in references.items():
                parsed[name] = parse_schema("PROTOBUF", found, dict(parsed))
            schema = parse_schema("PROTOBUF", text, parsed)
        except InvalidSchema as error:
            raise MisfitError(str(error)) from None
        assert isinstance(schema, ProtobufSchema)
        self._file = schema.descriptor
        self._first: list[Descriptor] = list(self._file.message_types_by_name.values())
        self._readers: dict[str, tuple[type[Any], Type, ToJson]] = {}

    def type_of(self, message: str) -> Type:
        """Of a message by its full name."""
        pool = self._file.pool
        return self._reader(pool.FindMessageTypeByName(message))[1]

    def read(self, data: bytes, start: int) -> tuple[str, str]:
        """(full name, JSON) of the message that stands behind its indexes; raises MisfitError."""
        from google.protobuf.message import DecodeError

        try:
            indexes = read_indexes(data, start)
            descriptor = indexes.message(self._first)
            kind, _, to_json = self._reader(descriptor)
            message = kind.FromString(data[indexes.end :])
        except UndecodableError as error:
            raise MisfitError(str(error)) from None
        except DecodeError:
            raise MisfitError(f"no message {descriptor.full_name}") from None
        found = json.dumps(to_json(message), ensure_ascii=False)
        return str(descriptor.full_name), found

    def _reader(self, descriptor: Descriptor) -> tuple[type[Any], Type, ToJson]:
        from google.protobuf.message_factory import GetMessageClass

        name = descriptor.full_name
        if name not in self._readers:
            type_, to_json = _message(descriptor, ())
            self._readers[name] = (GetMessageClass(descriptor), type_, to_json)
        return self._readers[name]


def _message(descriptor: Descriptor, above: tuple[str, ...]) -> tuple[Type, ToJson]:
    """The type of a message, and a function that makes JSON of one."""
    name = descriptor.full_name
    if name in above:
        raise MisfitError(f"{name} contains itself")
    if name in _WRAPPERS:
        type_, to_json = _single(descriptor.fields_by_name["value"], above)
        return type_, lambda message: to_json(message.value)
    if name in _AS_JSON:
        from google.protobuf.json_format import MessageToJson

        return "string", lambda message: MessageToJson(message, indent=None)
    if name == _TIMESTAMP:
        return "timestamp", _time
    if name == _DURATION:
        return "string", lambda message: message.ToJsonString()
    fields = [(field, *_field(field, (*above, name))) for field in descriptor.fields]
    readers = [(field.name, field.has_presence, to_json) for field, _, to_json in fields]

    def message_json(message: Any) -> dict[str, Any]:
        return {
            name: to_json(getattr(message, name))
            for name, has_presence, to_json in readers
            if not has_presence or message.HasField(name)
        }

    return Struct(tuple(Field(field.name, type_) for field, type_, _ in fields)), message_json


def _field(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[Type, ToJson]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        type_, to_json = _single(kind.fields_by_name["value"], above)
        return Map("string", type_), lambda found: {_key(k): to_json(found[k]) for k in found}
    type_, to_json = _single(field, above)
    if not field.is_repeated:
        return type_, to_json
    return Array(type_), lambda found: [to_json(item) for item in found]


def _single(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[Type, ToJson]:
    if field.type in _MESSAGES:
        return _message(field.message_type, above)
    if field.type == _ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return "string", lambda number: names.get(number, str(number))
    if field.type == _BYTES:
        return "binary", lambda data: base64.b64encode(data).decode()
    if field.type in (_DOUBLE, _FLOAT):
        return _TYPES[field.type], _float
    return _TYPES[field.type], lambda value: value


def _float(value: float) -> float | str:
    """A number; as text those that JSON has not."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _time(message: Any) -> str:
    try:
        return str(message.ToJsonString())
    except ValueError:
        raise MisfitError("a timestamp is beyond the years 1 to 9999") from None
