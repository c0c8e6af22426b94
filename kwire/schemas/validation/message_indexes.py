"""Which message of a Protobuf schema a record is: indexes that stand in front of it.

    count, then that many indexes, each a zigzag varint: [1, 0] is the first message nested in the
    second one of the file. The first message of the file, [0], is one byte 0.

Source: Confluent's documentation, "Wire format".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.schemas.validation.avro_bytes import UndecodableError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

INDEXES_MAX = 32


class Indexes(NamedTuple):
    """`end` is where the message begins."""

    path: tuple[int, ...]
    end: int

    def message(self, messages: list[Descriptor]) -> Descriptor:
        """Among those of a file; UndecodableError where there is none."""
        found = None
        for index in self.path:
            if not 0 <= index < len(messages):
                raise UndecodableError(f"the schema has no message {list(self.path)}")
            found = messages[index]
            messages = list(found.nested_types)
        return found


def read_indexes(data: bytes, start: int) -> Indexes:
    """UndecodableError where the bytes begin with none."""
    count, at = _varint(data, start)
    if not 0 <= count <= INDEXES_MAX:
        raise UndecodableError(f"{count} message indexes")
    path = []
    for _ in range(count):
        index, at = _varint(data, at)
        path.append(index)
    return Indexes(tuple(path) or (0,), at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise UndecodableError("its message indexes are not whole")
