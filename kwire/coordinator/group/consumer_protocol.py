"""The topics of a consumer's subscription, as far as the coordinator looks into member metadata.

    0  int16  version
    2  int32  number of topics
    6  per topic: int16 length, UTF-8 name
    ...       user data and, in later versions, more: not looked at

(ConsumerProtocolSubscription, version 0 prefix; later versions only add to it.)
"""

from __future__ import annotations

import struct

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
