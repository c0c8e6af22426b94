"""What a group has committed, as it was at one moment.

Transactions commit several offsets at once: an answer that is made in slices tells all of them or
none. So they are taken at once, and what is answered is made of them later.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

INVALID_OFFSET = -1

FoundTopic: TypeAlias = "m.OffsetFetchResponse.OffsetFetchResponseTopics"

Found: TypeAlias = "StoredOffset | ErrorCode | None"
"""An offset, why it is not told, or None where there is none."""


class FoundPartitions(NamedTuple):
    """Partitions of a topic, with what is committed of each."""

    name: str
    topic_id: bytes
    partitions: list[tuple[int, Found]]

    def answer(self) -> FoundTopic:
        """As OffsetFetch has it, at any version."""
        topic = m.OffsetFetchResponse.OffsetFetchResponseTopics(
            name=self.name, topic_id=self.topic_id, partitions=[]
        )
        shape, add = m.OffsetFetchResponse.OffsetFetchResponsePartitions, topic.partitions.append
        for index, found in self.partitions:
            partition = shape()
            partition.partition_index = index
            if isinstance(found, StoredOffset):
                partition.committed_offset = found.offset
                partition.committed_leader_epoch = found.leader_epoch
                partition.metadata = found.metadata
            else:
                partition.committed_offset = INVALID_OFFSET
                partition.metadata = ""
                if found is not None:
                    partition.error_code = int(found)
            add(partition)
        return topic


class FoundOffsets(NamedTuple):
    """One group of an OffsetFetch; an error is one of all of it."""

    group_id: str
    topics: list[FoundPartitions]
    error_code: int = 0

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics)
