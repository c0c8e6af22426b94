"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete.

Requests come with topic names resolved and unknown topics taken out; topic ids are copied to the
answer as they came. (KIP-211 retention, KIP-447 transactional commits, KIP-848.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kwire.coordinator.group import made_offsets
from kwire.coordinator.group.found_offsets import Found, FoundOffsets, FoundPartitions
from kwire.coordinator.group.kinds import GroupKinds
from kwire.coordinator.group.made_offsets import (
    Commit,
    MadeOffsets,
    committed_topic,
    metadata_too_large,
    transactional_topic,
)
from kwire.coordinator.group.offset_records import offset_tombstone
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import NO_ID, Partitions, Topics
from kwire.coordinator.group.usual_commit import UsualCommit
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Number, Producer, Result
from kwire.kept_errors import anew
from kwire.log.partition.producers import VerificationGuard
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

GROUP_NOT_FOUND_VERSION = 9
TXN_GROUP_NOT_FOUND_VERSION = 6

CommitRequest: TypeAlias = "m.OffsetCommitRequest | m.TxnOffsetCommitRequest"
CommittedTopic: TypeAlias = "m.OffsetCommitResponse.OffsetCommitResponseTopic"
TransactionalTopic: TypeAlias = "m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic"
FetchGroup: TypeAlias = "m.OffsetFetchRequest.OffsetFetchRequestGroup"


def commit_of(
    request: m.OffsetCommitRequest, wall_ms: int, metadata_bytes_max: int
) -> Commit[CommittedTopic]:
    """What an OffsetCommit asks for at this time."""
    retention_ms = request.retention_time_ms
    return Commit(
        request.group_id,
        committed_topic,
        m.OffsetCommitResponse.OffsetCommitResponsePartition,
        wall_ms,
        None if retention_ms == -1 else wall_ms + retention_ms,
        metadata_bytes_max,
    )


def transactional_commit_of(
    request: m.TxnOffsetCommitRequest, wall_ms: int, metadata_bytes_max: int
) -> Commit[TransactionalTopic]:
    """The same of a TxnOffsetCommit."""
    return Commit(
        request.group_id,
        transactional_topic,
        m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition,
        wall_ms,
        None,
        metadata_bytes_max,
    )


class OffsetOperations:
    """The offset requests of a shard."""

    def __init__(self, storage: GroupStorage, kinds: GroupKinds, metadata_bytes_max: int) -> None:
        self._storage = storage
        self._kinds = kinds
        self._metadata_bytes_max = metadata_bytes_max

    # ------------------------------------------------------------------ committing

    def commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> Result[m.OffsetCommitResponse]:
        """One OffsetCommit (v2-10). Raises what refuses the whole group."""
        self._check_commit(request, api_version, moment)
        commit = commit_of(request, moment.wall_ms, self._metadata_bytes_max)
        made, topics = made_offsets.make(commit, request.topics)
        self._storage.counts.offset_commits += len(made)
        return Result(made, m.OffsetCommitResponse(topics=topics))

    def commit_made(
        self,
        request: m.OffsetCommitRequest,
        api_version: int,
        made: MadeOffsets[CommittedTopic],
        moment: Moment,
    ) -> Result[m.OffsetCommitResponse]:
        """`commit` of what is made already."""
        self._check_commit(request, api_version, moment)
        self._count(made)
        response = m.OffsetCommitResponse(topics=made.answered)
        return Result(made.records, response, built=made)

    def _check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        kind = self._kinds.of(request.group_id)
        if kind is not None:
            kind.check_commit(request, api_version, moment)
        else:
            _check_new(request, api_version >= GROUP_NOT_FOUND_VERSION)

    def _count(self, made: MadeOffsets[CommittedTopic] | MadeOffsets[TransactionalTopic]) -> None:
        if made.error is not None:
            raise anew(made.error)
        self._storage.counts.offset_commits += len(made.records)

    def check_usual(self, commit: UsualCommit, moment: Moment) -> bool:
        """Whether the general way would take a commit, of a group that is there; its member lives
        then, and `commit_usual` may follow. Nothing has happened otherwise."""
        kind = self._kinds.of(commit.request.group_id)
        if kind is None:
            return False
        try:
            kind.check_commit(commit.request, commit.api_version, moment)
        except KafkaError:
            return False
        return True

    def commit_usual(
        self, commit: UsualCommit, numbers: Sequence[Number], moment: Moment
    ) -> Result[None]:
        """`commit` of a request that is checked already."""
        made, encoded = commit.records(numbers, moment.wall_ms)
        self._storage.counts.offset_commits += len(made)
        return Result(made, None, None, None, True, None, encoded)

    def is_storable(self, request: m.OffsetCommitRequest) -> bool:
        """Whether the metadata of every partition is within the limit."""
        return not any(
            x.committed_metadata
            and metadata_too_large(x.committed_metadata, self._metadata_bytes_max)
            for topic in request.topics
            for x in topic.partitions
        )

    def commit_in_transaction(
        self,
        request: m.TxnOffsetCommitRequest,
        api_version: int,
        moment: Moment,
        guard: VerificationGuard | None = None,
        made: MadeOffsets[TransactionalTopic] | None = None,
    ) -> Result[m.TxnOffsetCommitResponse]:
        """One TxnOffsetCommit (v0-6): pending until the transaction's marker comes. `made` is what
        it commits, where that is made already."""
        kind = self._kinds.of(request.group_id)
        if kind is not None:
            kind.check_transactional_commit(request, api_version)
        else:
            _check_new(request, api_version >= TXN_GROUP_NOT_FOUND_VERSION)
        producer = Producer(request.producer_id, request.producer_epoch, guard)
        if made is not None:
            self._count(made)
            response = m.TxnOffsetCommitResponse(topics=made.answered)
            return Result(made.records, response, producer=producer, built=made)
        commit = transactional_commit_of(request, moment.wall_ms, self._metadata_bytes_max)
        records, topics = made_offsets.make(commit, request.topics)
        self._storage.counts.offset_commits += len(records)
        return Result(records, m.TxnOffsetCommitResponse(topics=topics), producer=producer)

    # ------------------------------------------------------------------ fetching

    def fetch(self, request: FetchGroup, require_stable: bool) -> FoundOffsets:
        """One group of an OffsetFetch. `request.topics` None means everything that is committed.
        Raises what refuses the whole group."""
        group_id = request.group_id
        kind = self._kinds.of(group_id)
        if kind is not None:
            kind.check_fetch(request)
        committed: Topics = {}
        if kind is not None and kind.has_offsets:
            committed = self._storage.offsets.by_group.get(group_id, committed)
        wanted: Iterable[tuple[str, bytes, Iterable[int]]]
        if request.topics is None:
            wanted = [(name, NO_ID, partitions) for name, partitions in committed.items()]
        else:
            wanted = [(x.name, x.topic_id, x.partition_indexes) for x in request.topics]
        may_be_open = require_stable and self._storage.has_open_transactions(group_id)
        topics = []
        for name, topic_id, indexes in wanted:
            stored = committed.get(name, {})
            if stored and topic_id != NO_ID:
                stored = _of_topic(stored, topic_id)
            found: list[tuple[int, Found]] = [(index, stored.get(index)) for index in indexes]
            if may_be_open:
                is_open = self._storage.has_pending_offset
                found = [
                    (index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                    if is_open(group_id, name, index)
                    else (index, offset)
                    for index, offset in found
                ]
            topics.append(FoundPartitions(name, topic_id, found))
        return FoundOffsets(group_id, topics)

    # ------------------------------------------------------------------ deleting

    def delete(self, request: m.OffsetDeleteRequest) -> Result[m.OffsetDeleteResponse]:
        """One OffsetDelete (v0): offsets of topics that members consume are kept."""
        group_id = request.group_id
        kind = self._kinds.of(group_id)
        if kind is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        kind.check_delete_offsets(group_id)
        group = kind.subscribed_group(group_id)
        made = []
        topics = []
        for topic in request.topics:
            subscribed = group.is_subscribed(topic.name)
            partitions = []
            for x in topic.partitions:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
                partitions.append(
                    m.OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=x.partition_index, error_code=code
                    )
                )
                if not subscribed and self._has_offset(group_id, topic.name, x.partition_index):
                    made.append(offset_tombstone(group_id, topic.name, x.partition_index))
            topics.append(
                m.OffsetDeleteResponse.OffsetDeleteResponseTopic(
                    name=topic.name, partitions=partitions
                )
            )
        self._storage.counts.offset_deletions += len(made)
        return Result(made, m.OffsetDeleteResponse(topics=topics))

    def _has_offset(self, group_id: str, topic: str, partition: int) -> bool:
        return self._storage.offsets.get(
            group_id, topic, partition
        ) is not None or self._storage.has_pending_offset(group_id, topic, partition)

    def delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        """Tombstones for everything the group has committed."""
        return [
            offset_tombstone(group_id, topic, partition)
            for topic, partition in self._storage.offset_keys(group_id)
        ]


def _check_new(request: CommitRequest, has_not_found: bool) -> None:
    """Raise unless the commit may create a group: only one outside of any generation does."""
    if request.generation_id_or_member_epoch >= 0:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND if has_not_found else ErrorCode.ILLEGAL_GENERATION,
            f"Group {request.group_id} not found.",
        )


def _of_topic(stored: Partitions, topic_id: bytes) -> Partitions:
    """Without what was committed for another topic of the same name, as Apache Kafka 4.4 tells."""
    if all(offset.topic_id in (NO_ID, topic_id) for offset in stored.values()):
        return stored
    return {k: offset for k, offset in stored.items() if offset.topic_id in (NO_ID, topic_id)}
