"""Records and answers of commits: of one that is taken at once, or of many partitions in slices.

Neither looks at the group. What is made in slices is decided on when all of it is made, by one
operation that checks the group and appends one batch: a request is stored whole or not at all, as
in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kwire.coordinator import batches
from kwire.coordinator.group.offset_records import offset_commit
from kwire.coordinator.group.storage import OffsetRecord
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.group.usual_commit import OffsetShard
from kwire.coordinator.shard_interface import CoordinatorRecord, Producer
from kwire.kept_errors import kept
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

SLICE_PARTITIONS = 300
"""A slice is about 2 ms."""

Asked: TypeAlias = (
    "m.OffsetCommitRequest.OffsetCommitRequestTopic"
    " | m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic"
)


class CommittedPartition(Protocol):
    """A partition of the response to either kind of commit."""

    partition_index: int
    error_code: int


T = TypeVar(
    "T",
    "m.OffsetCommitResponse.OffsetCommitResponseTopic",
    "m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic",
)


class Commit(NamedTuple, Generic[T]):
    """What records and answer are made of, but for the topics. `new_topic(name, id, partitions)`
    and `new_partition()` make the answer."""

    group_id: str
    new_topic: Callable[[str, bytes, list[Any]], T]
    new_partition: Callable[[], CommittedPartition]
    wall_ms: int
    expire_ms: int | None
    metadata_bytes_max: int


def make(commit: Commit[T], topics: Sequence[Asked]) -> tuple[list[CoordinatorRecord], list[T]]:
    """Records and answer of these topics."""
    group_id, new_topic, new_partition, wall_ms, expire_ms, metadata_bytes_max = commit
    made: list[CoordinatorRecord] = []
    answered = []
    for topic in topics:
        partitions = []
        name, topic_id = topic.name, topic.topic_id
        for x in topic.partitions:
            code = 0
            metadata = x.committed_metadata
            if metadata and metadata_too_large(metadata, metadata_bytes_max):
                code = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                stored = StoredOffset(
                    x.committed_offset,
                    x.committed_leader_epoch,
                    metadata or "",
                    wall_ms,
                    expire_ms,
                    topic_id,
                    -1,
                )
                made.append(offset_commit(group_id, name, x.partition_index, stored))
            partition = new_partition()
            partition.partition_index = x.partition_index
            partition.error_code = code
            partitions.append(partition)
        answered.append(new_topic(name, topic_id, partitions))
    return made, answered


def are_many(topics: Sequence[Asked]) -> bool:
    """Whether they take more than one slice."""
    return sum(len(topic.partitions) for topic in topics) > SLICE_PARTITIONS


def metadata_too_large(metadata: str, size_max: int) -> bool:
    """Counted in UTF-16 units, as Java counts a string's length."""
    if len(metadata) > size_max:
        return True
    return not metadata.isascii() and len(metadata.encode("utf-16-le")) // 2 > size_max


# Setting fields is faster than arguments by name: every commit comes by here.


def committed_topic(
    name: str,
    topic_id: bytes,
    partitions: list[m.OffsetCommitResponse.OffsetCommitResponsePartition],
) -> m.OffsetCommitResponse.OffsetCommitResponseTopic:
    """A topic of the answer to an OffsetCommit."""
    topic = m.OffsetCommitResponse.OffsetCommitResponseTopic()
    topic.name, topic.topic_id, topic.partitions = name, topic_id, partitions
    return topic


def transactional_topic(
    name: str,
    topic_id: bytes,
    partitions: list[m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition],
) -> m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
    """A topic of the answer to a TxnOffsetCommit."""
    topic = m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic()
    topic.name, topic.topic_id, topic.partitions = name, topic_id, partitions
    return topic


class MadeOffsets(Generic[T]):
    """All of a commit of many partitions, once `steps` has ended; `error` is why there is none."""

    __slots__ = (
        "_batch",
        "_commit",
        "_producer",
        "_rows",
        "_topics",
        "answered",
        "error",
        "records",
    )

    def __init__(
        self, commit: Commit[T], topics: Sequence[Asked], producer: Producer | None = None
    ) -> None:
        self._commit: Commit[T] = commit
        self._topics = topics
        self._producer = producer
        self.records: list[CoordinatorRecord] = []
        self._rows: list[OffsetRecord] = []
        self.answered: list[T] = []
        self._batch: bytearray | None = None
        self.error: KafkaError | None = None

    @property
    def batch(self) -> bytearray:
        """See `BuiltRecords`; there are records."""
        assert self._batch is not None
        return self._batch

    def replay(self, shard: OffsetShard, offset: int, producer_id: int) -> None:
        """See `BuiltRecords`."""
        shard.storage.replay_offsets(self._rows, offset, producer_id)

    def steps(self) -> Iterator[None]:
        """Make it, a slice a step; what follows the last one has a turn for itself."""
        growing = batches.GrowingBatch(self._commit.wall_ms, self._producer)
        try:
            for goes_on, topics in _pieces(self._topics):
                made, answered = make(self._commit, topics)
                self.records += made
                self._rows += [OffsetRecord(*record[:2]) for record in made]  # type: ignore[arg-type]
                growing.add(batches.encode_all(made))
                if goes_on:
                    self.answered[-1].partitions += answered.pop(0).partitions
                self.answered += answered
                yield
            self._batch = growing.built()
        except KafkaError as error:
            self.error = kept(error)


def _pieces(topics: Sequence[Asked]) -> Iterator[tuple[bool, list[Asked]]]:
    """Topics of SLICE_PARTITIONS together, and whether the first goes on with the last one of the
    piece before."""
    piece: list[Asked] = []
    room, goes_on = SLICE_PARTITIONS, False
    for topic in topics:
        at = 0
        while True:
            part = topic.partitions[at : at + room]
            piece.append(_part(topic, part))
            at += len(part)
            room -= len(part)
            if room:
                break
            yield goes_on, piece
            piece, room, goes_on = [], SLICE_PARTITIONS, at < len(topic.partitions)
            if not goes_on:
                break
    if piece:
        yield goes_on, piece


def _part(topic: Asked, partitions: list[Any]) -> Asked:
    if len(partitions) == len(topic.partitions):
        return topic
    part = copy(topic)
    part.partitions = partitions
    return part
