"""Which schema a record says it is written with.

    key or value, in front of what is encoded    00 | id, int32
    header __key_schema_id, __value_schema_id    01 | GUID, 16 bytes;   or 00 | id, int32

The header counts where there is one; the bytes are then the encoded ones from the first on. Of
several headers some clients take the first and some the last: they have to say the same.
Source: Confluent's documentation, "Wire format".
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

ID_BYTES, GUID_BYTES = 5, 17
MAGIC_ID, MAGIC_GUID = 0, 1
Headers = Sequence[tuple[bytes, bytes | None]]


class Told(NamedTuple):
    """`head` says which schema, `start` is where the encoded bytes begin."""

    head: bytes
    start: int


def told(data: bytes, headers: Headers, header: bytes) -> Told | None:
    """None where the record names no schema."""
    values = [value for name, value in headers if name == header] if headers else ()
    if values:
        value = values[0]
        is_told = value is not None and is_head(value) and all(one == value for one in values)
        return Told(value, 0) if is_told and value is not None else None
    head = data[:ID_BYTES]
    return Told(head, ID_BYTES) if is_head(head) else None


def is_head(head: bytes) -> bool:
    if len(head) == ID_BYTES:
        return head[0] == MAGIC_ID
    return len(head) == GUID_BYTES and head[0] == MAGIC_GUID


def id_of(head: bytes) -> int | None:
    """The id, where it is one and no GUID."""
    return int.from_bytes(head[1:], "big", signed=True) if len(head) == ID_BYTES else None


def guid_of(head: bytes) -> str:
    return str(uuid.UUID(bytes=bytes(head[1:])))


def shown(head: bytes) -> str:
    found = id_of(head)
    return f"GUID {guid_of(head)}" if found is None else f"id {found}"
