"""The consumer protocol: what classic consumers send each other through the coordinator.

A classic group needs no more of it than the topics:

    0  int16  version
    2  int32  number of topics
    6  per topic: int16 length, UTF-8 name
    ...       user data and, in later versions, more: not read

(ConsumerProtocolSubscription, version 0 prefix; later versions only add to it.) When members of
both protocols are in a group, or a group changes its protocol, the coordinator reads all of it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeVar

from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.structs import Message

M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics, None when `metadata` is not a subscription."""
    if len(metadata) < _HEAD.size:
        return None
    version, count = _HEAD.unpack_from(metadata)
    position = _HEAD.size
    if version < 0 or not 0 <= count <= (len(metadata) - position) // _LENGTH.size:
        return None
    topics = []
    for _ in range(count):
        if position + _LENGTH.size > len(metadata):
            return None
        (length,) = _LENGTH.unpack_from(metadata, position)
        position += _LENGTH.size
        if length < 0 or position + length > len(metadata):
            return None
        try:
            topics.append(bytes(metadata[position : position + length]).decode())
        except UnicodeDecodeError:
            return None
        position += length
    # What follows the topics is user data: a nullable byte string in every version.
    return topics if position + 4 <= len(metadata) else None


VERSION_MAX = 3


class Subscription(NamedTuple):
    """What a classic member subscribes to, and what it says it owns: topic -> partitions."""

    topics: tuple[str, ...]
    owned: dict[str, tuple[int, ...]]
    rack_id: str | None


class Assignment(NamedTuple):
    """What a classic leader gave a member: topic -> partitions, and the bytes of an assignor."""

    partitions: dict[str, tuple[int, ...]]
    user_data: bytes


def parse_subscription(metadata: bytes) -> Subscription:
    """The whole of a subscription; raises MalformedError."""
    value = _parse(m.ConsumerProtocolSubscription, metadata)
    return Subscription(
        tuple(value.topics),
        {x.topic: tuple(x.partitions) for x in value.owned_partitions},
        value.rack_id or None,
    )


def parse_assignment(data: bytes) -> Assignment:
    """The whole of an assignment; raises MalformedError."""
    value = _parse(m.ConsumerProtocolAssignment, data)
    return Assignment(
        {x.topic: tuple(x.partitions) for x in value.assigned_partitions},
        bytes(value.user_data or b""),
    )


def version_of(metadata: bytes) -> int:
    """The version that a member's metadata is in, at most the newest one that is known."""
    if len(metadata) < 2:
        raise MalformedError("no version in a member's metadata")
    return min(int.from_bytes(metadata[:2], "big", signed=True), VERSION_MAX)


def encode_assignment(partitions: dict[str, tuple[int, ...]], version: int) -> bytes:
    """An assignment in a version that its receiver understands."""
    value = m.ConsumerProtocolAssignment(
        assigned_partitions=[
            m.ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    return version.to_bytes(2, "big") + value.encode(version)


def _parse(message: type[M], data: bytes) -> M:
    """Later versions only add to the newest known one."""
    version = version_of(data)
    if version < 0:
        raise MalformedError(f"{message.NAME} of version {version}")
    return message.decode_from(data, 2, version)[0]
