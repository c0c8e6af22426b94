"""What a coordinator shard and the runtime ask of each other.

An operation is a function `(shard, moment) -> Result`. It reads the shard's newest state and
returns the records that make its decision durable; `Shard.replay` is the only place that changes
what those records describe. Whatever a shard keeps beside its records (members that wait for a
join to complete, session deadlines) is soft state: it is gone with the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kwire.coordinator.open_batch import OpenBatch
from kwire.log.partition.producers import VerificationGuard
from kwire.pending import Answer, Pending
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.build import MadeBatch
from kwire.protocol.structs import Message

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

R = TypeVar("R")
S_contra = TypeVar("S_contra", contravariant=True)

Buffer: TypeAlias = bytes | bytearray | memoryview
# A reply that waits and the response that it is to have, of whatever request: those of a shard
# are in one queue.
AnyResponse: TypeAlias = Any
AnyReply: TypeAlias = Pending[AnyResponse]


Number: TypeAlias = int | bytes
"""What requests differ in that say the same but for their numbers (`CommitShape.numbers`)."""


class Failable(Protocol):
    """Who waits for an answer."""

    def fail(self, error: Exception) -> bool | None: ...


class Moment(NamedTuple):
    """The time of an operation: `now_ms` of the loop for deadlines, `wall_ms` for timestamps."""

    now_ms: int
    wall_ms: int


class CoordinatorRecord(NamedTuple):
    """A record to append: the key message, and the value message with the version to write it
    in; a value of None is a tombstone. `encoded_key` is the key as it stands in the log, where that
    is known."""

    key: Message
    value: Message | None
    value_version: int = 0
    encoded_key: bytes | None = None


class Producer(NamedTuple):
    """Whose transaction the records of an operation belong to."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None = None


class BuiltRecords(Protocol):
    """The records of an operation that are many, as one batch."""

    @property
    def batch(self) -> bytearray: ...

    def replay(self, shard: Any, offset: int, producer_id: int) -> None:
        """`Shard.replay` of each, from this offset on."""
        ...


class Result(NamedTuple, Generic[R]):
    """What an operation decided.

    `response` is the reply, given to the caller once everything pending is committed; or a
    `Pending` that the shard answers later (see `Shard.take_replies`). `appended` runs after the
    records were replayed, for the soft state that follows from them; a `Pending` that it returns is
    held as the response is, and completed behind it. `refused` runs instead when
    the log took none of them (too large, too few replicas in sync): it undoes soft state and
    returns the response, or None to fail the operation with that error. With `atomic` false the
    records may go into several batches, of which the first may be taken all the same. `encoded` are
    the keys and values of the records where they were made before, in turns of their own, and
    `built` stands for all of `records` where their batch was.
    """

    records: Sequence[CoordinatorRecord] = ()
    response: Answer[R] | None = None
    appended: Callable[[], Pending[None] | None] | None = None
    refused: Callable[[KafkaError], Answer[R] | None] | None = None
    atomic: bool = True
    producer: Producer | None = None
    encoded: list[tuple[bytes, bytes | None]] | None = None
    built: BuiltRecords | None = None


class Shard(Protocol):
    """The state of one partition of a coordinator's topic."""

    def replay(
        self,
        key: Message,
        value: Message | None,
        offset: int,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Apply one record; the only mutator of hard state. `value` None is a tombstone;
        `producer_id` is -1 outside of a transaction."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Apply the end of a producer's transaction."""
        ...

    def loaded(self, moment: Moment) -> Result[None]:
        """The log was replayed and requests are about to come: set up soft state."""
        ...

    def timers(self) -> int | None:
        """`now_ms` of the next deadline, None when there is none."""
        ...

    def expire(self, moment: Moment) -> Result[None] | None:
        """Act on one deadline that has passed, None when none has."""
        ...

    def take_replies(self) -> list[tuple[AnyReply, AnyResponse]]:
        """The parked replies that the last operation answered, in order; forgets them."""
        ...

    def discard(self) -> list[AnyReply]:
        """The shard is given up: every reply that is still parked."""
        ...


class DecidedRecords(Protocol[S_contra]):
    """Plain records that a request has been decided to make, but for its numbers.

    `size_bytes` is what they take of a batch at most (`open_batch.size_of`).
    """

    @property
    def size_bytes(self) -> int: ...

    def put(
        self, shard: S_contra, numbers: Sequence[Number], batch: OpenBatch, wall_ms: int
    ) -> None:
        """Put the records into `batch` and replay them, as an operation's would be."""
        ...


class AppendInfo(Protocol):
    """What an append did: the offsets that its batch got, and `written`, which completes when it
    is in the file and fails when it cannot be."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def written(self) -> Pending[None]: ...


class CoordinatorLog(Protocol):
    """The partitions of one internal topic; end offset and high watermark are exclusive."""

    def append(
        self,
        partition: int,
        batch: bytearray,
        leader_epoch: int,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        at_once: bool = False,
    ) -> AppendInfo:
        """Append one batch. Raises KafkaError before any offset
        was assigned; a failure after that comes by `AppendInfo.written`. `transaction_version`
        counts for the marker of a transaction (KIP-890). With `at_once` nothing else is about to
        be appended in this turn: there is no use in waiting for its end to write."""
        ...

    def append_made(self, partition: int, made: MadeBatch) -> bool:
        """Append and write a batch that was made for the end of the log, at the epoch in its
        header. False, and nothing is changed, where `append` has more to decide; raises KafkaError
        where it cannot be written."""
        ...

    def check_append(self, partition: int, leader_epoch: int) -> tuple[int, int]:
        """The offset that the next append gets (behind `end_offset` while one is not written), and
        how many bytes a batch may have. Raises the KafkaError that an append would raise at this
        moment, whatever its batch."""
        ...

    def read(self, partition: int, offset: int, bytes_max: int) -> Answer[list[Buffer]]:
        """Whole batches from `offset` to the log end as a list of buffers, or a Pending of it;
        at least one batch when there is one."""
        ...

    def start_offset(self, partition: int) -> int: ...

    def end_offset(self, partition: int) -> int: ...

    def high_watermark(self, partition: int) -> int: ...

    def batch_bytes_max(self, partition: int) -> int:
        """max.message.bytes of the topic."""
        ...


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The part of an event loop that the runtime uses; asyncio's has it."""

    def time(self) -> float:
        """Seconds, monotonic."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> TimerHandle: ...

    def call_soon(self, callback: Callable[[], None]) -> TimerHandle: ...
