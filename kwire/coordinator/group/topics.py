"""The topics that groups with server-side assignment read: what the metadata says of them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol

TOPICS_REMEMBERED = 32_768


class TopicInfo(NamedTuple):
    """A topic as the metadata has it."""

    topic_id: bytes
    partition_count: int


class Topics(Protocol):
    """The published metadata, as far as groups need it."""

    def find(self, name: str) -> TopicInfo | None: ...

    def name_of(self, topic_id: bytes) -> str | None: ...

    def names(self) -> Iterable[str]:
        """Every topic, internal ones too, in a fixed order."""
        ...

    def version(self) -> int:
        """The metadata's offset."""
        ...

    def has_all_of(self, now_ms: int) -> bool:
        """Whether all that was committed at this time of the loop is in here: the quorum's leader
        has told since how far that goes."""
        ...


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """A number that changes when one of the topics appears, disappears or grows; 0 for none.

    Kafka stores a hash of its own under the same name and compares it with nothing but the one it
    computes next, so a coordinator that moves between the two finds one change too many.
    """
    hashes = [topic_hash(name, topics) for name in names]
    if not any(hashes):
        return 0
    digest = hashlib.blake2b(b"".join(hashes), digest_size=8).digest()
    return int(struct.unpack(">q", digest)[0])


def topic_hash(name: str, topics: Topics) -> bytes:
    """A topic's part of the hash, empty for one that does not exist."""
    info = topics.find(name)
    return b"" if info is None else _topic_hash(name, info)


@lru_cache(TOPICS_REMEMBERED)
def _topic_hash(name: str, info: TopicInfo) -> bytes:
    topic = info.topic_id + struct.pack(">i", info.partition_count) + name.encode()
    return hashlib.blake2b(topic, digest_size=8).digest()
