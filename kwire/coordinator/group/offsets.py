"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete.

Requests come with topic names resolved and unknown topics taken out; topic ids are copied to the
answer as they came. (KIP-211 retention, KIP-447 transactional commits, KIP-848.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire.coordinator.group import carried, records
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.rebalance import ClassicGroups
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.consumer.offsets import (
    check_consumer_commit,
    check_consumer_fetch,
    check_transactional_commit,
    is_subscribed,
)
from kwire.coordinator.group.storage import CLASSIC, CONSUMER, SHARE, STREAMS, StoredOffset
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Producer, Result
from kwire.log.partition.producers import VerificationGuard
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

_COMMITTED_TOPIC: Any = m.OffsetCommitResponse.OffsetCommitResponseTopic
_COMMITTED_PARTITION: Any = m.OffsetCommitResponse.OffsetCommitResponsePartition
_TXN_COMMITTED_TOPIC: Any = m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_TXN_COMMITTED_PARTITION: Any = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
INVALID_OFFSET = -1
GROUP_NOT_FOUND_VERSION = 9
TXN_GROUP_NOT_FOUND_VERSION = 6


class OffsetOperations:
    """The offset requests of a shard."""

    def __init__(self, groups: ClassicGroups) -> None:
        self._groups = groups
        self._storage = groups.storage
        self._settings = groups.settings

    # ------------------------------------------------------------------ committing

    def commit(self, request: Any, api_version: int, moment: Moment) -> Result:
        """One OffsetCommit (v2-10). Raises what refuses the whole group."""
        generation = request.generation_id_or_member_epoch
        not_found = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if api_version >= GROUP_NOT_FOUND_VERSION
            else ErrorCode.ILLEGAL_GENERATION
        )
        if request.group_id in self._storage.consumer:
            consumers = self._storage.consumer[request.group_id]
            check_consumer_commit(consumers, request, request.group_id, api_version)
            group = None
        else:
            group = self._check_commit(request, generation, not_found, transactional=False)
        if group is not None and group.state in (
            ClassicState.STABLE,
            ClassicState.PREPARING_REBALANCE,
        ):
            member = group.members.get(request.member_id)
            if member is not None:
                self._groups.extend_session(group, member, moment)
        retention_ms = request.retention_time_ms
        expire_ms = None if retention_ms == -1 else moment.wall_ms + retention_ms
        made, topics = self._commit_topics(
            request, _COMMITTED_TOPIC, _COMMITTED_PARTITION, moment, expire_ms
        )
        return Result(made, m.OffsetCommitResponse(topics=topics))

    def commit_in_transaction(
        self, request: Any, api_version: int, moment: Moment, guard: VerificationGuard | None = None
    ) -> Result:
        """One TxnOffsetCommit (v0-6): pending until the transaction's marker comes."""
        generation = request.generation_id_or_member_epoch
        not_found = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if api_version >= TXN_GROUP_NOT_FOUND_VERSION
            else ErrorCode.ILLEGAL_GENERATION
        )
        if request.group_id in self._storage.consumer:
            consumers = self._storage.consumer[request.group_id]
            check_transactional_commit(consumers, request, request.group_id, api_version)
        else:
            self._check_commit(request, generation, not_found, transactional=True)
        made, topics = self._commit_topics(
            request, _TXN_COMMITTED_TOPIC, _TXN_COMMITTED_PARTITION, moment, None
        )
        producer = Producer(request.producer_id, request.producer_epoch, guard)
        return Result(made, m.TxnOffsetCommitResponse(topics=topics), producer=producer)

    def _check_commit(
        self, request: Any, generation: int, not_found: ErrorCode, *, transactional: bool
    ) -> ClassicGroup | None:
        """Raise unless the sender may commit; the group, None when the commit creates it."""
        group_id = request.group_id
        kind = self._storage.kind(group_id)
        if kind is None:
            if generation >= 0:
                raise KafkaError(not_found, f"Group {group_id} not found.")
            return None
        if kind != CLASSIC:
            self._check_foreign_commit(kind, group_id, generation)
            return None
        group = self._groups.find(group_id)
        assert group is not None
        member_id, instance_id = request.member_id, request.group_instance_id
        empty = group.state is ClassicState.EMPTY
        if generation < 0 and empty:
            return group
        if generation >= 0 or member_id or instance_id is not None:
            group.check_member(member_id, instance_id)
            if generation != group.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and not empty:
            # Somebody who assigns partitions by hand uses the name of a group with members.
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and group.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return group

    def _check_foreign_commit(self, kind: str, group_id: str, generation: int) -> None:
        if kind == SHARE:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if generation >= 0 or carried.has_members(self._storage, kind, group_id):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def _commit_topics(
        self,
        request: Any,
        topic_class: Any,
        partition_class: Any,
        moment: Moment,
        expire_ms: int | None,
    ) -> tuple[list[CoordinatorRecord], list[Any]]:
        """Records and answer of the topics of either kind of commit."""
        made: list[CoordinatorRecord] = []
        topics = []
        group_id, wall_ms = request.group_id, moment.wall_ms
        for topic in request.topics:
            partitions = []
            name, topic_id = topic.name, topic.topic_id
            for x in topic.partitions:
                code = 0
                metadata = x.committed_metadata
                if metadata and self._metadata_too_large(metadata):
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
                    made.append(records.offset_commit(group_id, name, x.partition_index, stored))
                partition = partition_class()
                partition.partition_index = x.partition_index
                partition.error_code = code
                partitions.append(partition)
            answer = topic_class()
            answer.name, answer.topic_id, answer.partitions = name, topic_id, partitions
            topics.append(answer)
        return made, topics

    def _metadata_too_large(self, metadata: str) -> bool:
        """Counted in UTF-16 units, as Java counts a string's length."""
        size_max = self._settings.offset_metadata_bytes_max
        if len(metadata) > size_max:
            return True
        return not metadata.isascii() and len(metadata.encode("utf-16-le")) // 2 > size_max

    # ------------------------------------------------------------------ fetching

    def fetch(self, request: Any, require_stable: bool) -> Any:
        """One group of an OffsetFetch: an OffsetFetchResponseGroup. `request.topics` None means
        everything that is committed. Raises what refuses the whole group."""
        group_id = request.group_id
        kind = self._storage.kind(group_id)
        if kind == CONSUMER:
            check_consumer_fetch(self._storage.consumer[group_id], request, group_id)
        elif kind == STREAMS and (request.member_id or request.member_epoch >= 0):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        committed = self._storage.offsets.by_group.get(group_id, {})
        if kind is None or kind == SHARE:
            committed = {}
        wanted: Iterable[tuple[str, bytes, Iterable[int]]]
        if request.topics is None:
            wanted = [(name, bytes(16), partitions) for name, partitions in committed.items()]
        else:
            wanted = [(x.name, x.topic_id, x.partition_indexes) for x in request.topics]
        topics = []
        for name, topic_id, indexes in wanted:
            stored = committed.get(name, {})
            topics.append(
                m.OffsetFetchResponse.OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id,
                    partitions=[
                        self._fetch_one(group_id, name, i, stored.get(i), require_stable)
                        for i in indexes
                    ],
                )
            )
        return m.OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _fetch_one(
        self,
        group_id: str,
        topic: str,
        partition: int,
        stored: StoredOffset | None,
        require_stable: bool,
    ) -> Any:
        answer = m.OffsetFetchResponse.OffsetFetchResponsePartitions
        if require_stable and self._storage.has_pending_offset(group_id, topic, partition):
            return answer(
                partition_index=partition,
                committed_offset=INVALID_OFFSET,
                metadata="",
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        if stored is None:
            return answer(partition_index=partition, committed_offset=INVALID_OFFSET, metadata="")
        return answer(
            partition_index=partition,
            committed_offset=stored.offset,
            committed_leader_epoch=stored.leader_epoch,
            metadata=stored.metadata,
        )

    # ------------------------------------------------------------------ deleting

    def delete(self, request: Any) -> Result:
        """One OffsetDelete (v0): offsets of topics that members consume are kept."""
        group_id = request.group_id
        kind = self._storage.kind(group_id)
        if kind is None or kind == SHARE:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group = self._groups.look(group_id) if kind == CLASSIC else None
        if (
            group is not None
            and group.state is not ClassicState.EMPTY
            and not group.uses_consumer_protocol
        ):
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        made = []
        topics = []
        for topic in request.topics:
            if group is not None:
                subscribed = group.is_subscribed(topic.name)
            elif kind == CONSUMER:
                subscribed = is_subscribed(self._storage.consumer[group_id], topic.name)
            else:
                subscribed = carried.subscribes(self._storage, kind, group_id, topic.name)
            partitions = []
            for x in topic.partitions:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
                partitions.append(
                    m.OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=x.partition_index, error_code=code
                    )
                )
                if not subscribed and self._has_offset(group_id, topic.name, x.partition_index):
                    made.append(records.offset_tombstone(group_id, topic.name, x.partition_index))
            topics.append(
                m.OffsetDeleteResponse.OffsetDeleteResponseTopic(
                    name=topic.name, partitions=partitions
                )
            )
        return Result(made, m.OffsetDeleteResponse(topics=topics))

    def _has_offset(self, group_id: str, topic: str, partition: int) -> bool:
        return self._storage.offsets.get(
            group_id, topic, partition
        ) is not None or self._storage.has_pending_offset(group_id, topic, partition)

    def delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        """Tombstones for everything the group has committed."""
        return [
            records.offset_tombstone(group_id, topic, partition)
            for topic, partition in self._storage.offset_keys(group_id)
        ]
