"""The share coordinator of a broker: its shards, and what becomes due in them over time.

It has the shape of a persister (`kwire/share/persister.py`), for the share partitions whose
partition of `__share_group_state` this broker leads; the others get NOT_COORDINATOR. Requests for
it come from the network by the API handlers, and from this broker's own persister. No call fails:
an error stands in the result of its partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from kwire.clock import Clock
from kwire.coordinator.deleted_topics import DeletedTopics
from kwire.coordinator.errors import refusal
from kwire.coordinator.loading import Worker
from kwire.coordinator.partitioner import partition_for
from kwire.coordinator.repeated_writes import RepeatedWrites
from kwire.coordinator.replies import Reply
from kwire.coordinator.runtime import END_OF_TURN, CoordinatorRuntime
from kwire.coordinator.shard_interface import CoordinatorLog, Loop, Moment, Result
from kwire.coordinator.share import operations
from kwire.coordinator.share.pruning import Pruning
from kwire.coordinator.share.shard import ShareCoordinatorSettings, ShareShard
from kwire.pending import Pending, after, gather
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.keys import coordinator_key
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    WritePartition,
)

TOPIC = "__share_group_state"
TIMES_KEPT = 50

# What a refusal of the runtime or the log says.
_TEXTS = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
}


class _OfPartition(Protocol):
    """Says of which partition of a topic it is."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partition(self) -> int: ...


A = TypeVar("A", bound=_OfPartition)
R = TypeVar("R")
Decide = Callable[[ShareShard, str, A, Moment], Result[R]]
Refuse = Callable[[bytes, int, int, str | None], R]


class ShareCoordinator:
    """The share partitions whose key falls on a partition that this broker leads.

    `partition_count()` is that of `__share_group_state`, `partitions_of(topic_id)` that of a topic
    or None, `has_all_of(now_ms)` whether it has what was committed then;
    `delete_records(partition, offset)` moves the start of a partition of the state's topic;
    `is_enabled()` says whether the cluster has share groups (share.version).
    """

    def __init__(
        self,
        *,
        settings: ShareCoordinatorSettings,
        partition_count: Callable[[], int],
        partitions_of: Callable[[bytes], int | None],
        partition_log: CoordinatorLog,
        delete_records: Callable[[int, int], Pending[None]],
        is_enabled: Callable[[], bool],
        loop: Loop,
        clock: Clock,
        has_all_of: Callable[[int], bool] = lambda now_ms: False,
        worker: Worker | None = None,
    ) -> None:
        self._partition_count = partition_count
        self._loop = loop
        self._deleted = deleted = DeletedTopics()
        self.writes = 0  # states of share partitions that were written, and how long they took
        self.write_times_s: deque[float] = deque(maxlen=TIMES_KEPT)
        self.runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            module="share-coordinator",
            new_shard=lambda partition: ShareShard(settings, partitions_of, deleted, has_all_of),
            partition_log=partition_log,
            loop=loop,
            clock=clock,
            write_timeout_ms=settings.write_timeout_ms,
            load_bytes=settings.load_buffer_bytes,
            append_linger_ms=(
                END_OF_TURN if settings.append_linger_ms < 0 else settings.append_linger_ms
            ),
            worker=worker,
        )
        self._repeated = RepeatedWrites(self.runtime, loop)
        self._pruning = Pruning(
            runtime=self.runtime,
            settings=settings,
            delete_records=delete_records,
            is_enabled=is_enabled,
            loop=loop,
        )

    # --- leadership of the partitions of __share_group_state ---

    def load(self, partition: int, leader_epoch: int) -> None:
        self.runtime.load(partition, leader_epoch)
        self._pruning.start()

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        self._pruning.forget(partition)
        self.runtime.unload(partition, leader_epoch)

    def topics_deleted(self, topic_ids: Iterable[bytes]) -> None:
        """Forget what share groups had of topics that are gone."""
        gone = frozenset(topic_ids)
        self._deleted.add(gone)
        self._repeated.write_all(lambda shard, moment: operations.topics_deleted(shard, gone))

    def close(self) -> None:
        self._pruning.close()
        self.runtime.close()

    def partition_of(self, group_id: str, topic_id: bytes, partition: int) -> int:
        """The partition of `__share_group_state` that a share partition belongs to."""
        key = coordinator_key(group_id, topic_id, partition)
        return partition_for(key, self._partition_count())

    # --- requests ---

    def initialize(
        self, group_id: str, partitions: Sequence[InitializePartition]
    ) -> Pending[list[PartitionResult]]:
        """See `operations.initialize`."""
        return self._each(
            group_id, partitions, operations.initialize, PartitionResult, "initialize", ""
        )

    def read(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionState]]:
        """See `operations.read`."""
        return self._each(group_id, partitions, operations.read, PartitionState, "read", "")

    def write(
        self, group_id: str, partitions: Sequence[WritePartition]
    ) -> Pending[list[PartitionResult]]:
        """See `operations.write`."""
        written = self._each(group_id, partitions, operations.write, PartitionResult, "write", "")
        written.add_done_callback(partial(self._count_writes, self._loop.time()))
        return written

    def _count_writes(self, begun_s: float, done: Pending[list[PartitionResult]]) -> None:
        count = sum(not result.error_code for result in done.result())
        if count:
            self.writes += count
            self.write_times_s.append(self._loop.time() - begun_s)

    def delete(
        self, group_id: str, partitions: Sequence[PartitionId]
    ) -> Pending[list[PartitionResult]]:
        """See `operations.delete`."""
        return self._each(group_id, partitions, operations.delete, PartitionResult, "delete", "")

    def read_summary(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionSummary]]:
        """See `operations.read_summary`."""
        return self._each(
            group_id, partitions, operations.read_summary, PartitionSummary, "read", " summary"
        )

    def _each(
        self,
        group_id: str,
        partitions: Sequence[A],
        decide: Decide[A, R],
        refuse: Refuse[R],
        verb: str,
        of: str,
    ) -> Pending[list[R]]:
        prefix = f"Unable to {verb} share group state{of}: "
        if len(partitions) == 1:
            return self._one(group_id, partitions[0], decide, refuse, prefix)
        pendings = [self._one(group_id, asked, decide, refuse, prefix) for asked in partitions]
        return after(gather(pendings), lambda done: [x.result()[0] for x in done.result()])

    def _one(
        self,
        group_id: str,
        asked: A,
        decide: Decide[A, R],
        refuse: Refuse[R],
        prefix: str,
    ) -> Pending[list[R]]:
        topic_id, partition = asked.topic_id, asked.partition

        def operation(shard: ShareShard, moment: Moment) -> Result[list[R]]:
            try:
                decided = decide(shard, group_id, asked, moment)
            except KafkaError as error:
                message = error.message
                if error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
                    message = f"{prefix}{message}"
                return Result((), [refuse(topic_id, partition, error.code, message)])
            response = decided.response
            assert response is not None
            assert not isinstance(response, Pending)
            return Result(decided.records, [response])

        def failed(error: KafkaError) -> list[R]:
            text = error.message or _TEXTS.get(ErrorCode(error.code), str(error))
            return [refuse(topic_id, partition, refusal(error), prefix + text)]

        reply: Reply[list[R]] = Reply(failed)
        return self.runtime.write(
            self.partition_of(group_id, topic_id, partition), operation, reply
        )
