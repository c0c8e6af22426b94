"""A record of a dead letter topic, as what it says of where it came from.

Whoever may write to the topic can write anything there: a header that is missing, there twice or
not what it should be makes a record no dead letter, and none is read as far as another topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kwire.protocol import dead_letter_headers as named
from kwire.protocol.records import Record

TOPIC_CHARACTERS_MAX = 249
OFFSET_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1
COUNT_MAX = (1 << 15) - 1
REASON_BYTES_MAX = 4096
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_INTERNAL = "__"
_KNOWN = (
    named.TOPIC,
    named.PARTITION,
    named.OFFSET,
    named.GROUP,
    named.DELIVERY_COUNT,
    named.MESSAGE,
)


class Origin(NamedTuple):
    """Where a record was."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}"


class DeadLetter(NamedTuple):
    """A dead letter: `offset` is its own, in the dead letter topic, `timestamp` (ms) is when it was
    written. `key` and `value` are those of the original where the group copies them."""

    offset: int
    timestamp: int
    origin: Origin
    group: str
    delivery_count: int | None
    reason: str
    key: bytes | None
    value: bytes | None

    @property
    def is_copy(self) -> bool:
        """Whether it has what the original had, apart from its headers."""
        return self.key is not None or self.value is not None


def read_letter(record: Record) -> DeadLetter | str:
    """What a record says; why it is no dead letter."""
    found = _found(record.headers)
    if isinstance(found, str):
        return found
    topic = _text(found.get(named.TOPIC))
    group = _text(found.get(named.GROUP))
    partition = _number(found.get(named.PARTITION), PARTITION_MAX)
    offset = _number(found.get(named.OFFSET), OFFSET_MAX)
    if topic is None or len(topic) > TOPIC_CHARACTERS_MAX or not _TOPIC.fullmatch(topic):
        return f"{named.TOPIC} names no topic"
    if topic in (".", "..") or topic.startswith(_INTERNAL):
        return f"{named.TOPIC} names {topic}, which no share group reads"
    if partition is None:
        return f"{named.PARTITION} is no partition"
    if offset is None:
        return f"{named.OFFSET} is no offset"
    if not group:
        return f"{named.GROUP} names no group"
    message = found.get(named.MESSAGE) or b""
    return DeadLetter(
        record.offset,
        record.timestamp,
        Origin(topic, partition, offset),
        group,
        _number(found.get(named.DELIVERY_COUNT), COUNT_MAX),
        message[:REASON_BYTES_MAX].decode(errors="replace"),
        _kept(record.key),
        _kept(record.value),
    )


def _found(headers: Iterable[tuple[str | bytes, bytes | None]]) -> dict[str, bytes | None] | str:
    found: dict[str, bytes | None] = {}
    for name, value in headers:
        text = name if isinstance(name, str) else bytes(name).decode(errors="replace")
        if text not in _KNOWN:
            continue
        if text in found:
            return f"{text} is there twice"
        found[text] = _kept(value)
    missing = [name for name in _KNOWN[:4] if name not in found]
    return f"{missing[0]} is missing" if missing else found


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _number(value: bytes | None, largest: int) -> int | None:
    if value is None or not value.isdigit() or len(value) > len(str(largest)):
        return None
    number = int(value)
    return number if number <= largest else None


def _kept(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)
