"""Data of Avro as JSON, and back: the JSON encoding of the Avro specification 1.12.

    bytes, fixed    text of the characters U+0000 to U+00FF, one a byte
    union           null, or an object of one name, that of the type: {"string": "x"}
    others          as one would think

Of a union of null and one other type the value alone is taken as well. Logical types are what they
stand for: a date is a number of days. A float or double that is no number is "NaN", "Infinity" or
"-Infinity", as Java's encoder prints it.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING

from kwire.schemas.formats.json_text import Json

if TYPE_CHECKING:
    import avro.schema

DEPTH_MAX = 200
"""Records, unions, arrays and maps inside of each other: what reads and writes JSON ends not far
behind."""
BITS = {"int": 32, "long": 64}
NUMBERS = {"float": "<f", "double": "<d"}
NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
VALUES_FREE, VALUES_PER_BYTE = 1_000_000, 8
"""What one datum may have: an item of an array may have no bytes."""


class NoDatumError(ValueError):
    """A value is none of its type, or bytes are no datum; `str()` says where and why."""


def encoded(schema: avro.schema.Schema, value: Json) -> bytes:
    """The binary encoding of a value. Raises NoDatumError."""
    out = bytearray()
    _write(schema, value, out, "$", 0)
    return bytes(out)


def decoded(schema: avro.schema.Schema, data: bytes, start: int = 0) -> Json:
    """The value of one datum, which `avro_bytes.check` has accepted. Raises NoDatumError where it
    has more values than are shown, or nests deeper."""
    reader = _Reader(data, start)
    return reader.value(schema, 0)


def _refuse(where: str, value: Json, kind: str) -> NoDatumError:
    return NoDatumError(f"{where}: {json.dumps(value, ensure_ascii=False)[:100]} is no {kind}")


def _write(schema: avro.schema.Schema, value: Json, out: bytearray, where: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise NoDatumError(f"{where[:100]}: it nests deeper than {DEPTH_MAX} levels")
    kind = schema.type
    if kind == "null" and value is None:
        return
    if kind == "boolean" and isinstance(value, bool):
        out.append(value)
    elif kind in BITS and isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << BITS[kind] - 1) <= value < 1 << BITS[kind] - 1:
            raise _refuse(where, value, kind)
        _number(value, out)
    elif kind in NUMBERS and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            packed = struct.pack(NUMBERS[kind], value)
        except (OverflowError, struct.error):
            raise _refuse(where, value, kind) from None
        if isinstance(value, int) and struct.unpack(NUMBERS[kind], packed)[0] != value:
            raise NoDatumError(f"{where}: a {kind} cannot hold {value}")
        out += packed
    elif kind in NUMBERS and value in NO_NUMBERS:
        out += struct.pack(NUMBERS[kind], float(str(value)))
    elif kind == "string" and isinstance(value, str):
        _text(value, out, where)
    elif kind in ("bytes", "fixed") and isinstance(value, str):
        try:
            data = value.encode("latin-1")
        except UnicodeEncodeError:
            raise NoDatumError(f"{where}: a byte is a character up to U+00FF") from None
        if kind == "bytes":
            _number(len(data), out)
        elif len(data) != schema.size:
            raise NoDatumError(f"{where}: {len(data)} bytes, of exactly {schema.size}")
        out += data
    elif kind == "enum" and isinstance(value, str) and value in schema.symbols:
        _number(schema.symbols.index(value), out)
    elif kind == "array" and isinstance(value, list):
        if value:
            _number(len(value), out)
        for at, item in enumerate(value):
            _write(schema.items, item, out, f"{where}[{at}]", depth + 1)
        out.append(0)
    elif kind == "map" and isinstance(value, dict):
        if value:
            _number(len(value), out)
        for name, item in value.items():
            _text(name, out, where)
            _write(schema.values, item, out, f"{where}.{name}", depth + 1)
        out.append(0)
    elif kind in ("union", "error_union"):
        _union(schema, value, out, where, depth)
    elif kind in ("record", "error") and isinstance(value, dict):
        _record(schema, value, out, where, depth)
    else:
        raise _refuse(where, value, kind)


def _record(
    schema: avro.schema.Schema, value: dict[str, Json], out: bytearray, where: str, depth: int
) -> None:
    names = [field.name for field in schema.fields]
    for name in value:
        if name not in names:
            raise NoDatumError(f"{where}: {schema.fullname} has no field {name[:100]}")
    for field in schema.fields:
        if field.name not in value:
            raise NoDatumError(f"{where}: the field {field.name} is missing")
        _write(field.type, value[field.name], out, f"{where}.{field.name}", depth + 1)


def _union(schema: avro.schema.Schema, value: Json, out: bytearray, where: str, depth: int) -> None:
    names = [_name(one) for one in schema.schemas]
    others = [at for at, name in enumerate(names) if name != "null"]
    inner: Json
    if value is None and "null" in names:
        at, inner = names.index("null"), None
    elif isinstance(value, dict) and len(value) == 1 and next(iter(value)) in names:
        ((name, inner),) = value.items()
        at = names.index(name)
    elif len(others) == 1:
        at, inner = others[0], value
    else:
        told = json.dumps(value, ensure_ascii=False)[:100]
        shape = f"null, or an object of one of the names {', '.join(names)}"
        raise NoDatumError(f"{where}: {told} is not of the union: {shape}")
    _number(at, out)
    branch = schema.schemas[at]
    try:
        _write(branch, inner, out, where, depth + 1)
    except NoDatumError as error:
        if inner is value or len(others) > 1 or branch.type not in ("map", "record"):
            raise
        # The value alone would be an object too.
        taken = f"{where}: the name {names[at]} is taken for that of the union's type"
        raise NoDatumError(f"{error} ({taken})") from None


def _name(schema: avro.schema.Schema) -> str:
    return str(getattr(schema, "fullname", None) or schema.type)


def _number(value: int, out: bytearray) -> None:
    left = value << 1 if value >= 0 else ~(value << 1)
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)


def _text(text: str, out: bytearray, where: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise NoDatumError(
            f"{where}: {json.dumps(text)[:100]} has half of a surrogate pair"
        ) from None
    _number(len(data), out)
    out += data


def _no_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


class _Reader:
    def __init__(self, data: bytes, start: int) -> None:
        self.data, self.at = data, start
        self.values_left = VALUES_FREE + VALUES_PER_BYTE * len(data)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def count(self) -> int:
        """Of a block; what its items take is passed over."""
        found = self.number()
        if found < 0:
            self.number()
        return abs(found)

    def value(self, schema: avro.schema.Schema, depth: int) -> Json:
        self.values_left -= 1
        if self.values_left < 0:
            raise NoDatumError("it has too many values to be shown")
        if depth > DEPTH_MAX:
            raise NoDatumError(f"it nests deeper than the {DEPTH_MAX} levels that are shown")
        kind = schema.type
        if kind == "null":
            return None
        if kind == "boolean":
            return self.take(1) == b"\1"
        if kind in BITS:
            return self.number()
        if kind in NUMBERS:
            (number,) = struct.unpack(NUMBERS[kind], self.take(8 if kind == "double" else 4))
            return float(number) if math.isfinite(number) else _no_number(number)
        if kind == "string":
            return self.take(self.number()).decode()
        if kind in ("bytes", "fixed"):
            return self.take(self.number() if kind == "bytes" else schema.size).decode("latin-1")
        if kind == "enum":
            return str(schema.symbols[self.number()])
        if kind in ("array", "map"):
            return self.items(schema, depth + 1)
        if kind in ("union", "error_union"):
            branch = schema.schemas[self.number()]
            inner = self.value(branch, depth + 1)
            return None if branch.type == "null" else {_name(branch): inner}
        return {field.name: self.value(field.type, depth + 1) for field in schema.fields}

    def items(self, schema: avro.schema.Schema, depth: int) -> Json:
        if schema.type == "array":
            listed: list[Json] = []
            while count := self.count():
                listed += [self.value(schema.items, depth) for _ in range(count)]
            return listed
        named: dict[str, Json] = {}
        while count := self.count():
            for _ in range(count):
                name = self.take(self.number()).decode()
                named[name] = self.value(schema.values, depth)
        return named
