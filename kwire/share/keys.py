"""The key of a share partition, by which its share coordinator is found (FindCoordinator)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire.protocol import uuids

# Share partitions whose state is written again and again, as long as that costs little memory.
_REMEMBERED, _REMEMBERED_LENGTH_MAX = 8192, 128
_TEXT_MAX = 24
_INT_MAX = (1 << 31) - 1


class SharePartitionKey(NamedTuple):
    """Which share partition: a group, and a partition of a topic."""

    group_id: str
    topic_id: bytes
    partition: int


def coordinator_key(group_id: str, topic_id: bytes, partition: int) -> str:
    """ "group:topic id:partition", whose hash decides on the partition of the state's topic."""
    if len(group_id) > _REMEMBERED_LENGTH_MAX:
        return _coordinator_key(group_id, topic_id, partition)
    return _remembered(group_id, topic_id, partition)


@lru_cache(_REMEMBERED)
def _remembered(group_id: str, topic_id: bytes, partition: int) -> str:
    return _coordinator_key(group_id, topic_id, partition)


def _coordinator_key(group_id: str, topic_id: bytes, partition: int) -> str:
    return f"{group_id}:{uuids.to_text(topic_id)}:{partition}"


def parse_coordinator_key(key: str) -> SharePartitionKey | None:
    """What a key says, None for what is none. The group's name may have colons of its own; the
    numbers may be written as Java's parseInt reads them."""
    parts = key.rstrip(":").rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip():
        return None
    group_id, topic_text, number = parts
    try:
        topic_id = uuids.from_text(topic_text)
    except ValueError:
        return None
    digits = number[1:] if number[:1] in ("-", "+") else number
    if len(topic_text) > _TEXT_MAX or len(topic_id) != 16 or not digits.isdecimal():
        return None
    partition = int(number)
    if not -_INT_MAX - 1 <= partition <= _INT_MAX:
        return None
    return SharePartitionKey(group_id, topic_id, partition)
