"""Kafka's uuids: 16 raw bytes here, 22 characters of unpadded URL-safe base64 as text."""

from __future__ import annotations

from binascii import Error as _Base64Error
from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.clock import Random

__all__ = ["METADATA_TOPIC_ID", "ONE", "ZERO", "from_text", "random_uuid", "to_text"]

ZERO = bytes(16)
"""No id."""

ONE = bytes(15) + b"\x01"
METADATA_TOPIC_ID = ONE
"""Topic id of `__cluster_metadata`."""

_RESERVED_MAX = 100
"""Kafka keeps the ids with a zero upper half and a lower half up to this for itself."""

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def to_text(uuid: bytes) -> str:
    """16 bytes -> 22 characters."""
    if len(uuid) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(uuid)}")
    return b2a_base64(uuid, newline=False)[:22].translate(_TO_URL).decode()


def from_text(text: str) -> bytes:
    """22 characters -> 16 bytes; ValueError for anything else."""
    if len(text) != 22 or not _ALPHABET.issuperset(text):
        raise ValueError(f"not a uuid in base64 form: {text[:40]!r}")
    try:
        return a2b_base64(text.encode().translate(_FROM_URL) + b"==")
    except _Base64Error as error:
        raise ValueError(f"not a uuid in base64 form: {text!r}") from error


def random_uuid(random: Random) -> bytes:
    """A version 4 uuid as Kafka draws them: not reserved, and its text never starts with `-`."""
    while True:
        drawn = bytearray(random.random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        uuid = bytes(drawn)
        reserved = uuid[:8] == ZERO[:8] and int.from_bytes(uuid[8:], "big") <= _RESERVED_MAX
        if not reserved and uuid[0] >> 2 != _DASH:
            return uuid


_DASH = 62
"""Value of `-` in URL-safe base64: the first six bits of a uuid whose text starts with it."""
