"""A record of `__kwire_idempotency_keys`: what became of one key, and how it is written.

    key     JSON `[scope, key]`: the principal whose key it is, and the key as it was sent
    value   JSON object
              version     1
              body        hexadecimal digest of what was published: topic, records
              topic       where to
              partitions  of each message, in the order of the messages
              offsets     {partition: offset of the first message in it}; the others follow it

A key is found in the partition that `partition_of_key` gives, so that all records of a key have one
order. The transaction of the messages has this record last: both are there, or neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kwire.client.producer import Kept
from kwire.protocol.records.partitioner import partition_of

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

KEYS_TOPIC = "__kwire_idempotency_keys"
VERSION = 1
KEY_CHARACTERS_MAX = 255
DIGEST_BYTES = 16


class KeyRecord(NamedTuple):
    """See the module. `body` is a digest."""

    body: bytes
    topic: str
    partitions: tuple[int, ...]
    offsets: dict[int, int]

    def places(self) -> list[Kept]:
        """Where each message is, in their order."""
        following = dict(self.offsets)
        places: list[Kept] = []
        for partition in self.partitions:
            places.append(Kept(partition, following[partition]))
            following[partition] += 1
        return places


class UnreadableRecord(ValueError):
    """It has not the layout of the module."""


def key_bytes(scope: str, key: str) -> bytes:
    """The key of the record."""
    return json.dumps([scope, key], separators=(",", ":")).encode()


def partition_of_key(scope: str, key: str, count: int) -> int:
    """Where the records of a key are, of so many partitions."""
    return partition_of(key_bytes(scope, key), count)


def digest_of(*parts: bytes) -> bytes:
    """Of the parts and of where they end."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()[:DIGEST_BYTES]


def made(body: bytes, topic: str, partitions: Sequence[int], offsets: dict[int, int]) -> KeyRecord:
    """A record with one offset a partition that it names."""
    assert set(partitions) == set(offsets), (partitions, offsets)
    return KeyRecord(body, topic, tuple(partitions), offsets)


def encoded(record: KeyRecord) -> bytes:
    """The value of the record."""
    return json.dumps(
        {
            "version": VERSION,
            "body": record.body.hex(),
            "topic": record.topic,
            "partitions": record.partitions,
            "offsets": {str(index): first for index, first in record.offsets.items()},
        },
        separators=(",", ":"),
    ).encode()


def decoded(value: bytes) -> KeyRecord:
    """The record of a value; UnreadableRecord."""
    try:
        found: Json = json.loads(value)
    except (ValueError, RecursionError):
        raise UnreadableRecord("no JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise UnreadableRecord(f"no record of version {VERSION}")
    body, topic = found.get("body"), found.get("topic")
    partitions, offsets = found.get("partitions"), found.get("offsets")
    if not (isinstance(body, str) and isinstance(topic, str)):
        raise UnreadableRecord("body or topic is no text")
    if not (isinstance(partitions, list) and isinstance(offsets, dict)):
        raise UnreadableRecord("partitions are no list, or offsets no object")
    try:
        digest = bytes.fromhex(body)
        first = {int(index): _number(offset) for index, offset in offsets.items()}
    except ValueError:
        raise UnreadableRecord("no digest, or no partition") from None
    record = KeyRecord(digest, topic, tuple(_number(index) for index in partitions), first)
    if not set(record.partitions) <= set(first):
        raise UnreadableRecord("a partition has no offset")
    return record


def _number(value: Json) -> int:
    if type(value) is not int or value < 0:
        raise UnreadableRecord(f"{value!r} is no partition or offset")
    return value
