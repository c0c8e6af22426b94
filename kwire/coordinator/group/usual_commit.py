"""A commit that its consumer repeats with other offsets: what can be made of it before.

Keys, and all of the values but their numbers, are made once. `put` puts the records of one request
into the open batch of its partition and replays them; where that is not possible,
`OffsetOperations.commit_usual` has them appended and replayed as those of any other commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kwire.coordinator.group.offset_records import OFFSET_COMMIT_VERSION
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.open_batch import Encoded, OpenBatch, size_of
from kwire.coordinator.shard_interface import CoordinatorRecord, Number
from kwire.protocol import messages as m
from kwire.protocol.commit_frames import CommitValue
from kwire.protocol.coordinator_records import encode_key
from kwire.protocol.records.build import framing


class OffsetShard(Protocol):
    """What has the offsets."""

    @property
    def storage(self) -> GroupStorage: ...


class UsualCommit:
    """The partitions of one OffsetCommit, whose topics have name and id; `partition` is that of
    `__consumer_offsets`. Raises EncodeError for a text that is too long."""

    __slots__ = ("_rows", "api_version", "partition", "request", "size_bytes")

    def __init__(self, request: m.OffsetCommitRequest, api_version: int, partition: int) -> None:
        self.request = request
        self.api_version = api_version
        self.partition = partition
        self._rows: list[tuple[m.OffsetCommitKey, bytes, CommitValue, bytes, bytes]] = []
        for topic in request.topics:
            for x in topic.partitions:
                key = m.OffsetCommitKey(
                    group=request.group_id, topic=topic.name, partition=x.partition_index
                )
                value = CommitValue(x.committed_metadata or "", topic.topic_id)
                encoded_key, length = encode_key(key), len(value.encoded(0, 0, 0))
                self._rows.append((key, encoded_key, value, *framing(encoded_key, length)))
        self.size_bytes = size_of(self.records([0] * 3 * len(self._rows), 0)[1])

    @property
    def keys_bytes(self) -> int:
        """What the keys of its records have together."""
        return sum(len(encoded_key) for _, encoded_key, *_ in self._rows)

    def records(
        self, numbers: Sequence[Number], wall_ms: int
    ) -> tuple[list[CoordinatorRecord], list[Encoded]]:
        """The records, and their keys and values as they stand in the log."""
        records: list[CoordinatorRecord] = []
        encoded: list[Encoded] = []
        at = 0
        for key, encoded_key, value, *_ in self._rows:
            offset, epoch = int(numbers[at]), int(numbers[at + 1])
            at += 3
            message = value.message(offset, epoch, wall_ms)
            records.append(CoordinatorRecord(key, message, OFFSET_COMMIT_VERSION))
            encoded.append((encoded_key, value.encoded(offset, epoch, wall_ms)))
        return records, encoded

    def put(
        self, shard: OffsetShard, numbers: Sequence[Number], batch: OpenBatch, wall_ms: int
    ) -> None:
        """See `DecidedRecords`: what `records`, `OpenBatch.add` and the replay do together."""
        storage, rows = shard.storage, batch.rows
        at, record_offset = 0, batch.next_offset
        for key, _, value, start, end in self._rows:
            offset, epoch = int(numbers[at]), int(numbers[at + 1])
            at += 3
            rows.append((wall_ms, start + value.encoded(offset, epoch, wall_ms) + end))
            stored = StoredOffset(
                offset, epoch, value.metadata, wall_ms, None, value.topic_id, record_offset
            )
            storage.replay_committed(key.group, key.topic, key.partition, stored)
            record_offset += 1
        batch.next_offset = record_offset
        batch.size_bytes += self.size_bytes
        storage.counts.offset_commits += len(self._rows)
