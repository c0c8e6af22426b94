"""Messages as JSON has them and records as Kafka has them, in both directions.

Values are base64; keys, names and values of headers are text. A key or a header that is no UTF-8
is base64 in a field of its own; a header that is there several times has a list of values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.shapes import INT64_MAX, Base64, Partition
from kwire.protocol.records import Record
from kwire.protocol.records.partitioner import partition_of

HEADERS_MAX = 256
MESSAGES_MAX = 10_000
SLICE = 256


class Binary(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are no text."""

    base64: Base64


HeaderValue: TypeAlias = str | Binary | list[str | Binary | None] | None


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """A message to be published. Without a value it is a tombstone; without a timestamp it has
    that of its arrival. The key decides on the partition as Kafka's own clients do, where
    `partition` does not."""

    value: Base64 | None = None
    key: str | None = None
    headers: Annotated[dict[str, HeaderValue], Meta(max_length=HEADERS_MAX)] | None = None
    partition: Partition | None = None
    timestamp: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None
    key_base64: Base64 | None = None
    """A key that is no text, in the place of `key`."""


Messages: TypeAlias = Annotated[list[Message], Meta(min_length=1, max_length=MESSAGES_MAX)]


class Fetched(Struct, omit_defaults=True):
    """A message that was read."""

    offset: int
    timestamp: int
    key: str | None
    value: bytes | None
    headers: Mapping[str, HeaderValue]
    key_base64: bytes | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    partition: int | UnsetType = UNSET


def last_partition(messages: Sequence[Message]) -> int:
    """The highest one that messages name, -1 where none does."""
    return max((-1 if one.partition is None else one.partition for one in messages), default=-1)


def to_records(
    messages: Sequence[Message], partitions: int, unkeyed: int, now_ms: int
) -> tuple[dict[int, list[Record]], list[int]]:
    """Records by partition, and the partition of each message. Problem, naming the message."""
    found: dict[int, list[Record]] = {}
    placed: list[int] = []
    known: dict[bytes, int] = {}
    for at, message in enumerate(messages):
        text = message.key
        key = message.key_base64 if text is None else text.encode()
        index = message.partition
        if index is None:
            if key is None:
                index = unkeyed
            else:
                index = known.get(key)
                if index is None:
                    index = known[key] = partition_of(key, partitions)
        elif index >= partitions:
            raise _wrong(at, "partition", f"expected less than {partitions}, got {index}")
        if text is not None and message.key_base64 is not None:
            raise _wrong(at, "key_base64", "there is a key already")
        headers = message.headers
        timestamp = message.timestamp
        records = found.get(index)
        if records is None:
            records = found[index] = []
        records.append(
            Record(
                0,
                now_ms if timestamp is None else timestamp,
                key,
                message.value,
                () if not headers else _to_headers(headers),
            )
        )
        placed.append(index)
    return found, placed


def _wrong(at: int, field: str, what: str) -> Problem:
    name = f"messages[{at}].{field}"
    return Problem(400, "invalid_body", f"{name}: {what}", field=name, index=at)


def _to_headers(headers: Mapping[str, HeaderValue]) -> list[tuple[str | bytes, bytes | None]]:
    found: list[tuple[str | bytes, bytes | None]] = []
    for name, value in headers.items():
        if type(value) is str:
            found.append((name, value.encode()))
        else:
            for one in value if isinstance(value, list) else (value,):
                found.append((name, _to_bytes(one)))
    return found


def _to_bytes(value: str | Binary | None) -> bytes | None:
    if value is None:
        return None
    return value.base64 if isinstance(value, Binary) else value.encode()


def from_record(record: Record) -> Fetched:
    """As JSON shows it."""
    key = record.key
    fetched = Fetched(
        record.offset,
        record.timestamp,
        None,
        None if record.value is None else bytes(record.value),
        _from_headers(record.headers) if record.headers else {},
    )
    if key is not None:
        text = _text(bytes(key))
        if text is None:
            fetched.key_base64 = bytes(key)
        else:
            fetched.key = text
    return fetched


async def from_records(records: Iterable[Record]) -> list[Fetched]:
    """The same of some; who else asks is answered between slices of them."""
    found: list[Fetched] = []
    for record in records:
        found.append(from_record(record))
        if len(found) % SLICE == 0:
            await asyncio.sleep(0)
    return found


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _from_headers(headers: Sequence[tuple[str | bytes, bytes | None]]) -> dict[str, HeaderValue]:
    found: dict[str, list[str | Binary | None]] = {}
    for name, value in headers:
        shown = name if isinstance(name, str) else name.decode(errors="replace")
        found.setdefault(shown, []).append(_from_bytes(value))
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _from_bytes(value: bytes | None) -> str | Binary | None:
    if value is None:
        return None
    raw = bytes(value)
    text = _text(raw)
    return Binary(raw) if text is None else text
