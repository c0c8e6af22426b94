"""Who keeps the state of share partitions: the interface that leaders and share groups use.

A share partition is what one share group has of one partition of a topic: the share-partition
start offset, and what became of the records behind it. Its state lives with the share coordinator,
fenced by two epochs: the group's state epoch (a group that is initialized anew gets a higher one)
and the leader epoch of the partition. Each call takes several partitions of one group and gives
one result for each, in the order asked; an error stands in the result of its partition. The
`Pending` itself fails only when the persister is closed (COORDINATOR_NOT_AVAILABLE). Cancelling
it gives up waiting, not what was sent. Source: KIP-932, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode

# What is not known, or is to stay as it is.
UNKNOWN_START_OFFSET = -1
UNKNOWN_DELIVERY_COMPLETE_COUNT = -1
# What a share partition without state has.
DEFAULT_STATE_EPOCH = 0


class StateBatch(NamedTuple):
    """Records from `first_offset` to `last_offset` (both included) that are in one state.

    `delivery_state` is Kafka's number of it: 0 available, 2 acknowledged, 3 archiving (KIP-1191),
    4 archived. `delivery_count` is how often they were delivered.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class InitializePartition(NamedTuple):
    """The group begins at `start_offset`, -1 where the leader is to choose."""

    topic_id: bytes
    partition: int
    state_epoch: int
    start_offset: int


class WritePartition(NamedTuple):
    """What changed: the batches are laid over those that are known, where the higher delivery count
    holds, and of the same count the higher delivery state. The start offset never goes back.
    `delivery_complete_count` counts the records from the start offset on that are
    acknowledged or archived, -1 when unknown."""

    topic_id: bytes
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch]


class PartitionEpoch(NamedTuple):
    """Who asks: the leader of this leader epoch. Reading fences older ones."""

    topic_id: bytes
    partition: int
    leader_epoch: int


class PartitionId(NamedTuple):
    """A partition of a topic."""

    topic_id: bytes
    partition: int


class PartitionResult(NamedTuple):
    """What became of a partition of initialize, write or delete."""

    topic_id: bytes
    partition: int
    error_code: int = ErrorCode.NONE
    error_message: str | None = None


class PartitionState(NamedTuple):
    """All of a share partition's state; `start_offset` is -1 where none is known."""

    topic_id: bytes
    partition: int
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = DEFAULT_STATE_EPOCH
    start_offset: int = UNKNOWN_START_OFFSET
    state_batches: Sequence[StateBatch] = ()


class PartitionSummary(NamedTuple):
    """A share partition's state without its batches."""

    topic_id: bytes
    partition: int
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    state_epoch: int = DEFAULT_STATE_EPOCH
    leader_epoch: int = 0
    start_offset: int = UNKNOWN_START_OFFSET
    delivery_complete_count: int = UNKNOWN_DELIVERY_COMPLETE_COUNT


class Persister(Protocol):
    """Keeps the state of share partitions. A result's `error_code` is what the share coordinator
    said, among them FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_REQUEST; or why none could be asked, once the attempts are used up:
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, NETWORK_EXCEPTION.
    """

    def initialize(
        self, group_id: str, partitions: Sequence[InitializePartition]
    ) -> Pending[list[PartitionResult]]:
        """Give partitions their first state, or one of a higher state epoch."""
        ...

    def read(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionState]]:
        """All that is known; a lower leader epoch than this one is fenced from now on.
        INVALID_REQUEST for one that was not initialized."""
        ...

    def write(
        self, group_id: str, partitions: Sequence[WritePartition]
    ) -> Pending[list[PartitionResult]]:
        """Keep a change; without an error it is kept, and later reads see it. INVALID_REQUEST for
        one that was not initialized."""
        ...

    def delete(
        self, group_id: str, partitions: Sequence[PartitionId]
    ) -> Pending[list[PartitionResult]]:
        """Forget partitions; one without state is no error."""
        ...

    def read_summary(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionSummary]]:
        """Offsets and epochs. The leader epoch is not looked at (-1 where nobody leads); what
        was not initialized has no start offset, which is no error."""
        ...
