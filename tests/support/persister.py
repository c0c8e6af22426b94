"""A persister in memory: what a share coordinator would say, at once or when the test lets it.

A share partition has to be initialized before it is read or written, as with Kafka's coordinator.
State is kept by offset, one entry for each record: slow, and plainly right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    StateBatch,
    WritePartition,
)

T = TypeVar("T")
Key = tuple[str, bytes, int]


@dataclass
class KeptState:
    """One share partition; `records` is offset -> (delivery state, delivery count). `fence` is the
    highest leader epoch that has read, `leader_epoch` the one that a summary tells."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = -1
    fence: int = 0
    records: dict[int, tuple[int, int]] = field(default_factory=dict)

    def batches(self) -> list[StateBatch]:
        found: list[StateBatch] = []
        for offset, (state, count) in sorted(self.records.items()):
            last = found[-1] if found else None
            if last is not None and last[1:] == (offset - 1, state, count):
                found[-1] = last._replace(last_offset=offset)
            else:
                found.append(StateBatch(offset, offset, state, count))
        return found


class MemoryPersister:
    """Implements `kwire.share.persister.Persister`.

    `holding` keeps answers back until `release`; what they say is decided when they were asked.
    `errors[group, topic id, partition]` are codes that the next calls get instead, one each.
    `calls` lists every call as (name, group, partitions).
    """

    def __init__(self) -> None:
        self.states: dict[Key, KeptState] = {}
        self.errors: dict[Key, list[ErrorCode]] = {}
        self.calls: list[tuple[str, str, list[Any]]] = []
        self.holding = False
        self._held: list[Callable[[], object]] = []

    def release(self, count: int | None = None) -> None:
        """Give the oldest `count` answers that were kept back, or all."""
        due = self._held[:count] if count is not None else self._held[:]
        del self._held[: len(due)]
        for answer in due:
            answer()

    @property
    def held(self) -> int:
        return len(self._held)

    def initialize(
        self, group_id: str, partitions: Sequence[InitializePartition]
    ) -> Pending[list[PartitionResult]]:
        self.calls.append(("initialize", group_id, list(partitions)))
        return self._answer([self._initialize(group_id, asked) for asked in partitions])

    def read(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionState]]:
        self.calls.append(("read", group_id, list(partitions)))
        return self._answer([self._read(group_id, asked) for asked in partitions])

    def write(
        self, group_id: str, partitions: Sequence[WritePartition]
    ) -> Pending[list[PartitionResult]]:
        self.calls.append(("write", group_id, list(partitions)))
        return self._answer([self._write(group_id, asked) for asked in partitions])

    def delete(
        self, group_id: str, partitions: Sequence[PartitionId]
    ) -> Pending[list[PartitionResult]]:
        self.calls.append(("delete", group_id, list(partitions)))
        return self._answer([self._delete(group_id, asked) for asked in partitions])

    def read_summary(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionSummary]]:
        self.calls.append(("read_summary", group_id, list(partitions)))
        return self._answer([self._summary(group_id, asked) for asked in partitions])

    # ------------------------------------------------------------------

    def _answer(self, results: list[T]) -> Pending[list[T]]:
        pending: Pending[list[T]] = Pending()
        if self.holding:
            self._held.append(lambda: pending.complete(results))
        else:
            pending.complete(results)
        return pending

    def _forced(self, key: Key) -> ErrorCode:
        wanted = self.errors.get(key)
        return wanted.pop(0) if wanted else ErrorCode.NONE

    def _initialize(self, group_id: str, asked: InitializePartition) -> PartitionResult:
        key = (group_id, asked.topic_id, asked.partition)
        state = self.states.get(key)
        error = self._forced(key)
        if not error and state is not None and asked.state_epoch < state.state_epoch:
            error = ErrorCode.FENCED_STATE_EPOCH
        if not error:
            count = 0 if asked.start_offset != -1 else -1
            fence = 0 if state is None else state.fence
            self.states[key] = KeptState(asked.state_epoch, 0, asked.start_offset, count, fence)
        return PartitionResult(asked.topic_id, asked.partition, error)

    def _read(self, group_id: str, asked: PartitionEpoch) -> PartitionState:
        key = (group_id, asked.topic_id, asked.partition)
        state = self.states.get(key)
        error = self._forced(key)
        if not error and state is not None and asked.leader_epoch < state.fence:
            error = ErrorCode.FENCED_LEADER_EPOCH
        if not error and state is None:
            error = ErrorCode.INVALID_REQUEST
        if error or state is None:
            return PartitionState(asked.topic_id, asked.partition, error)
        if asked.leader_epoch != state.fence:
            state.leader_epoch = state.fence = asked.leader_epoch
        return PartitionState(
            asked.topic_id,
            asked.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=state.batches(),
        )

    def _write(self, group_id: str, asked: WritePartition) -> PartitionResult:
        key = (group_id, asked.topic_id, asked.partition)
        error = self._forced(key)
        state = self.states.get(key)
        if not error and state is not None:
            if asked.leader_epoch < state.fence:
                error = ErrorCode.FENCED_LEADER_EPOCH
            elif asked.state_epoch < state.state_epoch:
                error = ErrorCode.FENCED_STATE_EPOCH
        if not error and state is None:
            error = ErrorCode.INVALID_REQUEST
        if error or state is None:
            return PartitionResult(asked.topic_id, asked.partition, error)
        if asked.start_offset > state.start_offset:
            state.delivery_complete_count = asked.delivery_complete_count
        elif asked.start_offset == state.start_offset:
            state.delivery_complete_count = max(
                state.delivery_complete_count, asked.delivery_complete_count
            )
        state.start_offset = max(state.start_offset, asked.start_offset)
        for batch in asked.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                before = state.records.get(offset, (-1, -1))
                after = batch.delivery_state, batch.delivery_count
                state.records[offset] = max(before, after, key=lambda x: (x[1], x[0]))
        for offset in [offset for offset in state.records if offset < state.start_offset]:
            del state.records[offset]
        return PartitionResult(asked.topic_id, asked.partition)

    def _delete(self, group_id: str, asked: PartitionId) -> PartitionResult:
        key = (group_id, asked.topic_id, asked.partition)
        error = self._forced(key)
        if not error:
            self.states.pop(key, None)
        return PartitionResult(asked.topic_id, asked.partition, error)

    def _summary(self, group_id: str, asked: PartitionEpoch) -> PartitionSummary:
        key = (group_id, asked.topic_id, asked.partition)
        error = self._forced(key)
        state = self.states.get(key)
        if error or state is None:
            return PartitionSummary(asked.topic_id, asked.partition, error)
        return PartitionSummary(
            asked.topic_id,
            asked.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
