"""A record of `__kwire_idempotency_keys`: what became of one key, and how it is written.

    key     JSON `[scope, key]`: the principal whose key it is, and the key as it was sent
    value   JSON object
              version     1; 2 where a partition has several runs
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
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kwire.client.producer import Kept
from kwire.protocol.records.partitioner import partition_of

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

KEYS_TOPIC = "__kwire_idempotency_keys"
VERSION, VERSION_OF_RUNS = 1, 2
KEY_CHARACTERS_MAX = 255
DIGEST_BYTES = 16


class Run(NamedTuple):
    """Messages of a partition that follow each other: those of one batch."""

    first: int
    length: int


class KeyRecord(NamedTuple):
    """See the module. `body` is a digest, `runs` are of each partition, in order."""

    body: bytes
    topic: str
    partitions: tuple[int, ...]
    runs: dict[int, tuple[Run, ...]]

    def places(self) -> list[Kept]:
        """Where each message is, in their order."""
        offsets = {
            partition: iter([run.first + at for run in runs for at in range(run.length)])
            for partition, runs in self.runs.items()
        }
        return [Kept(partition, next(offsets[partition])) for partition in self.partitions]


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


def made(
    body: bytes, topic: str, partitions: Sequence[int], runs: Mapping[int, Sequence[Run]]
) -> KeyRecord:
    """A record with as many offsets of each partition as it names it."""
    counts = {
        index: sum(run.length for run in of_partition) for index, of_partition in runs.items()
    }
    assert Counter(partitions) == counts, (partitions, runs)
    own = {index: tuple(of_partition) for index, of_partition in runs.items()}
    return KeyRecord(body, topic, tuple(partitions), own)


def encoded(record: KeyRecord) -> bytes:
    """The value of the record."""
    is_single = all(len(runs) == 1 for runs in record.runs.values())
    return json.dumps(
        {
            "version": VERSION if is_single else VERSION_OF_RUNS,
            "body": record.body.hex(),
            "topic": record.topic,
            "partitions": record.partitions,
            "offsets": {
                str(index): runs[0].first if is_single else runs
                for index, runs in record.runs.items()
            },
        },
        separators=(",", ":"),
    ).encode()


def decoded(value: bytes) -> KeyRecord:
    """The record of a value; UnreadableRecord."""
    try:
        found: Json = json.loads(value)
    except (ValueError, RecursionError):
        raise UnreadableRecord("no JSON") from None
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(found, dict) or version not in (VERSION, VERSION_OF_RUNS):
        raise UnreadableRecord(f"no record of version {VERSION} or {VERSION_OF_RUNS}")
    body, topic = found.get("body"), found.get("topic")
    listed, offsets = found.get("partitions"), found.get("offsets")
    if not (isinstance(body, str) and isinstance(topic, str)):
        raise UnreadableRecord("body or topic is no text")
    if not (isinstance(listed, list) and isinstance(offsets, dict)):
        raise UnreadableRecord("partitions are no list, or offsets no object")
    partitions = tuple(_number(index) for index in listed)
    counts = Counter(partitions)
    try:
        digest = bytes.fromhex(body)
        runs = {
            int(index): (Run(_number(told), counts[int(index)]),)
            if version == VERSION
            else _runs(told)
            for index, told in offsets.items()
        }
    except ValueError:
        raise UnreadableRecord("no digest, or no partition") from None
    if any(sum(run.length for run in runs.get(i, ())) != counts[i] for i in {**counts, **runs}):
        raise UnreadableRecord("there are not as many offsets as messages")
    return KeyRecord(digest, topic, partitions, runs)


def _runs(told: Json) -> tuple[Run, ...]:
    found: list[Run] = []
    for one in told if isinstance(told, list) else []:
        if not isinstance(one, list) or len(one) != 2:
            raise UnreadableRecord(f"{one!r} is no run of offsets")
        found.append(Run(*map(_number, one)))
    return tuple(found)


def _number(value: Json) -> int:
    if type(value) is not int or value < 0:
        raise UnreadableRecord(f"{value!r} is no partition or offset")
    return value
