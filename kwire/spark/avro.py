"""Reading Avro's binary form by a schema, for the archive's decoding; no writing, no files.

    null        nothing
    boolean     a byte, 0 or 1
    int, long   zigzag varint
    float       4 bytes, little-endian;  double 8
    bytes       long, then so many bytes;  string the same in UTF-8
    record      its fields in order;  enum an int;  fixed its bytes;  union a long, the branch
    array, map  blocks: a count (below 0: its absolute value and a size), items; 0 ends

`compile_schema` turns a schema into a reader: `reader(data, position) -> (value, position)`. Values
are what JSON can hold: bytes and fixed become text of code points 0 to 255, as Avro's own JSON has
them; NaN and the infinities become text. Logical types stay the numbers they are.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

Reader = Callable[[bytes, int, int], tuple[Any, int]]

DEPTH_MAX = 64
ITEMS_MAX = 10_000_000
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


class AvroError(ValueError):
    """A schema that is none, or bytes that are not of it."""


def compile_schema(text: str, references: Sequence[str] = ()) -> Reader:
    """A reader for the schema (JSON); raises AvroError. `references`: schemas whose types it
    names, each behind those that it needs itself."""
    names: dict[str, Reader] = {}
    for reference in references:
        _compile(_parse(reference), names, "")
    return _compile(_parse(text), names, "")


def _parse(text: str) -> Any:
    try:
        schema = json.loads(text)
        # Names that cannot be written are seen here, not in each of the values that hold them.
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise AvroError("the schema has half a character") from None
    except ValueError as error:
        raise AvroError(f"the schema is no JSON: {error}") from None
    return schema


def decode(reader: Reader, data: bytes, position: int = 0) -> Any:
    """The value that fills `data` from `position` on; AvroError if it does not fit exactly."""
    try:
        value, end = reader(data, position, 0)
    except (IndexError, struct.error):
        raise AvroError("the value ends too early") from None
    except UnicodeDecodeError:
        raise AvroError("a string is no UTF-8") from None
    if end != len(data):
        raise AvroError(f"{len(data) - end} bytes behind the value")
    return value


def _compile(schema: Any, names: dict[str, Reader], space: str) -> Reader:
    if isinstance(schema, list):
        return _union([_compile(branch, names, space) for branch in schema])
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        return _named(schema, names, space)
    if not isinstance(schema, dict) or "type" not in schema:
        raise AvroError(f"no schema: {str(schema)[:80]}")
    kind = schema["type"]
    if isinstance(kind, dict | list) or kind in _PRIMITIVES:
        return _compile(kind, names, space)
    if kind in ("record", "error"):
        return _record(schema, names, space)
    if kind == "enum":
        return _remember(schema, names, space, _enum(list(schema.get("symbols", []))))
    if kind == "fixed":
        return _remember(schema, names, space, _fixed(int(schema.get("size", -1))))
    if kind == "array":
        return _array(_compile(schema.get("items"), names, space))
    if kind == "map":
        return _map(_compile(schema.get("values"), names, space))
    return _named(str(kind), names, space)


def _full_name(schema: dict[str, Any], space: str) -> str:
    name = str(schema.get("name", ""))
    if not name:
        raise AvroError(f"a {schema.get('type')} without a name")
    own = schema.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def _remember(
    schema: dict[str, Any], names: dict[str, Reader], space: str, reader: Reader
) -> Reader:
    names[_full_name(schema, space)] = reader
    return reader


def _named(name: str, names: dict[str, Reader], space: str) -> Reader:
    for full in (f"{space}.{name}" if space else name, name):
        if full in names:
            return names[full]
    raise AvroError(f"unknown type {name}")


def _record(schema: dict[str, Any], names: dict[str, Reader], space: str) -> Reader:
    full = _full_name(schema, space)
    fields: list[tuple[str, Reader]] = []

    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEPTH_MAX:
            raise AvroError(f"nested deeper than {DEPTH_MAX}")
        value: dict[str, Any] = {}
        for name, reader in fields:
            value[name], at = reader(data, at, depth + 1)
        return value, at

    names[full] = read  # before its fields: they may hold it
    inner = full.rpartition(".")[0]
    for field in schema.get("fields", []):
        if not isinstance(field, dict) or "name" not in field or "type" not in field:
            raise AvroError(f"a field of {full} without name or type")
        fields.append((str(field["name"]), _compile(field["type"], names, inner)))
    return read


def _long(data: bytes, at: int, depth: int = 0) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise AvroError("a number of more than 64 bits")


def _null(data: bytes, at: int, depth: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int, depth: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise AvroError(f"a boolean of {data[at]}")
    return data[at] == 1, at + 1


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _float(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    return _number(_FLOAT.unpack_from(data, at)[0]), at + 4


def _double(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    return _number(_DOUBLE.unpack_from(data, at)[0]), at + 8


def _slice(data: bytes, at: int, size: int) -> bytes:
    if size < 0 or size > len(data) - at:
        raise AvroError(f"{size} bytes where {len(data) - at} are left")
    return data[at : at + size]


def _bytes(data: bytes, at: int, depth: int) -> tuple[str, int]:
    size, at = _long(data, at)
    return _slice(data, at, size).decode("latin-1"), at + size


def _string(data: bytes, at: int, depth: int) -> tuple[str, int]:
    size, at = _long(data, at)
    return _slice(data, at, size).decode(), at + size


def _fixed(size: int) -> Reader:
    if size < 0:
        raise AvroError("a fixed without a size")
    return lambda data, at, depth: (_slice(data, at, size).decode("latin-1"), at + size)


def _enum(symbols: list[str]) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[str, int]:
        index, at = _long(data, at)
        if not 0 <= index < len(symbols):
            raise AvroError(f"symbol {index} of {len(symbols)}")
        return symbols[index], at

    return read


def _union(branches: list[Reader]) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        index, at = _long(data, at)
        if not 0 <= index < len(branches):
            raise AvroError(f"branch {index} of {len(branches)}")
        return branches[index](data, at, depth)

    return read


def _blocks(data: bytes, at: int, item: Callable[[int], int]) -> int:
    """Call `item(position) -> position` for every item of the blocks; where they end."""
    total = 0
    while True:
        count, at = _long(data, at)
        if count == 0:
            return at
        if count < 0:
            count = -count
            _, at = _long(data, at)
        total += count
        if total > ITEMS_MAX or count > (len(data) - at + 1) * 8:
            raise AvroError(f"{total} items")
        for _ in range(count):
            at = item(at)


def _array(reader: Reader) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEPTH_MAX:
            raise AvroError(f"nested deeper than {DEPTH_MAX}")
        found: list[Any] = []

        def item(position: int) -> int:
            value, position = reader(data, position, depth + 1)
            found.append(value)
            return position

        return found, _blocks(data, at, item)

    return read


def _map(reader: Reader) -> Reader:
    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEPTH_MAX:
            raise AvroError(f"nested deeper than {DEPTH_MAX}")
        found: dict[str, Any] = {}

        def item(position: int) -> int:
            key, position = _string(data, position, depth)
            found[key], position = reader(data, position, depth + 1)
            return position

        return found, _blocks(data, at, item)

    return read


_PRIMITIVES: dict[str, Reader] = {
    "null": _null,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}
