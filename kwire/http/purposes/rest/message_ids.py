"""Message ids of a queue: opaque to whoever gets one, and of nobody else's making.

    bytes  what (all big endian)
    8      instance: the process that has delivered the message
    4      partition
    8      offset
    2      how often the message has been delivered
    n      queue, a zero byte, group: UTF-8
    16     HMAC-SHA-256 of all that and of the caller's key, by a key of the process, cut off

in base64url without padding. An id of another process is told from one that is made up: the
message was delivered there, and comes again from there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from struct import Struct
from typing import NamedTuple

from kwire.clock import Random

INSTANCE_BYTES = 8
TAG_BYTES = 16
COUNT_MAX = 0xFFFF
ID_CHARACTERS_MAX = 2048
"""Enough for the longest names of a queue and a group, of characters of four bytes."""
_PLACE = Struct(">IQH")


class Delivery(NamedTuple):
    """One delivery of one message."""

    queue: str
    group: str
    partition: int
    offset: int
    delivery_count: int


class Foreign(Exception):
    """An id of another process."""


class NoId(Exception):
    """No id of ours."""


class MessageIds:
    """Those of one process."""

    def __init__(self, random: Random) -> None:
        self._instance = random.random_bytes(INSTANCE_BYTES)
        self._key = random.random_bytes(32)

    def made(self, delivery: Delivery, caller: bytes) -> str:
        """The id of a delivery to a caller."""
        place = _PLACE.pack(
            delivery.partition, delivery.offset, min(delivery.delivery_count, COUNT_MAX)
        )
        names = f"{delivery.queue}\0{delivery.group}".encode()
        text = self._instance + place + names
        return base64.urlsafe_b64encode(text + self._tag(text, caller)).rstrip(b"=").decode()

    def read(self, text: str, caller: bytes) -> Delivery:
        """The delivery of an id; Foreign, NoId."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise NoId from None
        if len(raw) < INSTANCE_BYTES + _PLACE.size + 2 + TAG_BYTES:
            raise NoId
        signed, tag = raw[:-TAG_BYTES], raw[-TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(signed, caller)):
            raise NoId if signed.startswith(self._instance) else Foreign
        partition, offset, count = _PLACE.unpack_from(signed, INSTANCE_BYTES)
        names = signed[INSTANCE_BYTES + _PLACE.size :].decode()
        queue, _, group = names.partition("\0")
        return Delivery(queue, group, partition, offset, count)

    def _tag(self, text: bytes, caller: bytes) -> bytes:
        signed = b"%d:" % len(caller) + caller + text
        return hmac.digest(self._key, signed, hashlib.sha256)[:TAG_BYTES]
