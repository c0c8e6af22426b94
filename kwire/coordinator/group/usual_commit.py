"""A commit that its consumer repeats with other offsets: what can be made of it before.

Keys, and all of the values but their numbers, are made once. `OffsetOperations.commit_usual` makes
the records of one request; they are appended and replayed as those of any other commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.coordinator.group.offset_records import OFFSET_COMMIT_VERSION
from kwire.coordinator.open_batch import Encoded
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import messages as m
from kwire.protocol.commit_frames import CommitValue
from kwire.protocol.coordinator_records import encode_key

Number = int | bytes
"""What the commits of a consumer differ in: as `CommitShape.numbers` gives it."""


class UsualCommit:
    """The partitions of one OffsetCommit, whose topics have name and id; `partition` is that of
    `__consumer_offsets`. Raises EncodeError for a text that is too long."""

    __slots__ = ("_rows", "api_version", "partition", "request")

    def __init__(self, request: m.OffsetCommitRequest, api_version: int, partition: int) -> None:
        self.request = request
        self.api_version = api_version
        self.partition = partition
        self._rows: list[tuple[m.OffsetCommitKey, bytes, CommitValue]] = []
        for topic in request.topics:
            for x in topic.partitions:
                key = m.OffsetCommitKey(
                    group=request.group_id, topic=topic.name, partition=x.partition_index
                )
                value = CommitValue(x.committed_metadata or "", topic.topic_id)
                self._rows.append((key, encode_key(key), value))

    @property
    def keys_bytes(self) -> int:
        """What the keys of its records have together."""
        return sum(len(encoded_key) for _, encoded_key, _ in self._rows)

    def records(
        self, numbers: Sequence[Number], wall_ms: int
    ) -> tuple[list[CoordinatorRecord], list[Encoded]]:
        """The records, and their keys and values as they stand in the log."""
        records: list[CoordinatorRecord] = []
        encoded: list[Encoded] = []
        at = 0
        for key, encoded_key, value in self._rows:
            offset, epoch = int(numbers[at]), int(numbers[at + 1])
            at += 3
            message = value.message(offset, epoch, wall_ms)
            records.append(CoordinatorRecord(key, message, OFFSET_COMMIT_VERSION))
            encoded.append((encoded_key, value.encoded(offset, epoch, wall_ms)))
        return records, encoded
