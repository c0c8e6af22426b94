"""Whether bytes are one datum of an Avro schema, without making the datum.

Everything is bounded: an array of nulls may say that it has 2^60 items in nine bytes, and a record
may contain itself. What is inside of each other stands on a list, not on Python's stack: a linked
list may be long. Source: the Avro specification, binary encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from kwire.schemas.validation.allowance import Allowance

if TYPE_CHECKING:
    import avro.schema

DEPTH_MAX = 10_000
"""Records, unions, arrays and maps inside of each other. Readers of other languages end before."""
ITEMS_MAX = 1_000_000  # of a block
_TYPE = attrgetter("type")
_WIDTHS = {"float": 4, "double": 8, "null": 0}


class UndecodableError(ValueError):
    """Bytes that are no datum of the schema; `str()` says why."""


def check(schema: avro.schema.Schema, data: bytes, start: int, allowance: Allowance) -> None:
    """Raises UndecodableError, AllowanceSpentError; a value is a step."""
    datum = _Datum(data, start, allowance)
    datum.skip(schema)
    if datum.at != len(data):
        raise UndecodableError(f"{len(data) - datum.at} bytes are left over")


def is_empty(schema: avro.schema.Schema, known: dict[str, bool]) -> bool:
    """Whether its data have no bytes, so that a million of them are nothing to look at. `known` of
    records by their names; one that contains itself has no data that end."""
    if schema.type == "fixed":
        return bool(schema.size == 0)
    if schema.type not in ("record", "error"):
        return bool(schema.type == "null")
    name = schema.fullname
    if name not in known:
        known[name] = False
        known[name] = all(is_empty(field.type, known) for field in schema.fields)
    return known[name]


class _Datum:
    def __init__(self, data: bytes, start: int, allowance: Allowance) -> None:
        self.data = data
        self.at = start
        self.allowance = allowance
        self.empty: dict[str, bool] = {}

    def skip(self, schema: avro.schema.Schema) -> None:
        """Around the value that is looked at are the rests of what it is in."""
        around = [iter((schema,))]
        while around:
            for inner in around[-1]:
                below = self.value(inner)
                if below is not None:
                    if len(around) > DEPTH_MAX:
                        told = f"it nests deeper than {DEPTH_MAX} levels of records and unions"
                        raise UndecodableError(told)
                    around.append(below)
                    break
            else:
                around.pop()

    def value(self, schema: avro.schema.Schema) -> Iterator[avro.schema.Schema] | None:
        """Pass over a value; the schemas of those in it, which come next."""
        self.allowance.take(1)
        kind = schema.type
        if kind in ("int", "long"):
            number = self.number()
            if kind == "int" and not -(1 << 31) <= number < 1 << 31:
                raise UndecodableError(f"{number} is no int")
        elif kind in _WIDTHS:
            self.advance(_WIDTHS[kind])
        elif kind == "boolean":
            self.advance(1)
            if self.data[self.at - 1] > 1:
                raise UndecodableError("a boolean is neither 0 nor 1")
        elif kind == "fixed":
            self.advance(schema.size)
        elif kind in ("bytes", "string"):
            self.text(kind == "string")
        elif kind == "enum":
            self.index(len(schema.symbols), "symbols of an enum")
        elif kind in ("union", "error_union"):
            branch = self.index(len(schema.schemas), "branches of a union")
            return iter((schema.schemas[branch],))
        elif kind in ("array", "map"):
            return self.items(schema)
        else:
            return map(_TYPE, schema.fields)
        return None

    def advance(self, count: int) -> None:
        if count < 0 or self.at + count > len(self.data):
            raise UndecodableError("it ends in the middle of a value")
        self.at += count

    def number(self) -> int:
        """A long: zigzag, seven bits a byte, at most ten bytes."""
        value = shift = 0
        while True:
            self.advance(1)
            byte = self.data[self.at - 1]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise UndecodableError("a number has more than ten bytes")
        if value >> 64:
            raise UndecodableError("a number has more than 64 bits")
        return (value >> 1) ^ -(value & 1)

    def index(self, count: int, what: str) -> int:
        found = self.number()
        if not 0 <= found < count:
            raise UndecodableError(f"{found} is none of the {count} {what}")
        return found

    def text(self, is_string: bool) -> None:
        size = self.number()
        self.advance(size)
        if is_string:
            try:
                str(self.data[self.at - size : self.at], "utf-8")
            except UnicodeDecodeError:
                raise UndecodableError("a string is no UTF-8") from None

    def items(self, schema: avro.schema.Schema) -> Iterator[avro.schema.Schema]:
        """Items in blocks: a count, negative where a size in bytes follows, until a count is 0."""
        is_map = schema.type == "map"
        items = schema.values if is_map else schema.items
        while count := self.number():
            if count < 0:
                count, size = -count, self.number()
                if not 0 <= size <= len(self.data) - self.at:
                    raise UndecodableError("it ends in the middle of a value")
            if count > ITEMS_MAX:
                raise UndecodableError(f"a block has {count} items")
            if not is_map and is_empty(items, self.empty):
                continue
            for _ in range(count):
                if is_map:
                    self.text(is_string=True)
                yield items
