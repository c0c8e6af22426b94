"""Committed offsets as the log has them."""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol import uuids

NO_ID = uuids.ZERO
"""Of a topic: in a commit whose record has none."""


class StoredOffset(NamedTuple):
    """A committed offset. `record_offset` is where its record stands, -1 for none; `expire_ms`
    is an explicit expiry (OffsetCommit v2-4), None for the broker's retention."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None
    topic_id: bytes
    record_offset: int


Partitions = dict[int, StoredOffset]
Topics = dict[str, Partitions]


class Offsets:
    """Offsets by group, topic and partition; empty levels are removed. Changed by replay only."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[str, Topics] = {}

    def get(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        topics = self.by_group.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, group_id: str, topic: str, partition: int, value: StoredOffset) -> None:
        topics = self.by_group.setdefault(group_id, {})
        topics.setdefault(topic, {})[partition] = value

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self.by_group[group_id]
