"""One partition of a coordinator's topic, while this broker leads it.

Decision 9: an operation sees the newest state, its reply waits until everything that was
appended before it is committed. Replies therefore leave in the order in which they were held.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Generic, Protocol, TypeVar

from kwire.coordinator.loading import Loading
from kwire.coordinator.open_batch import OpenBatch
from kwire.coordinator.shard_interface import (
    AnyReply,
    AnyResponse,
    Failable,
    Shard,
    TimerHandle,
)
from kwire.kept_errors import kept
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.turn_budget import TurnBudget

S = TypeVar("S", bound=Shard)


class ShardState(Enum):
    """LOADING -> ACTIVE or FAILED; either may go back to LOADING. A partition that this broker
    does not lead has no PartitionShard at all."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class HeldReply(Protocol):
    """A reply that waits for `offset` to be committed, until `deadline_ms`."""

    offset: int
    deadline_ms: int

    def release(self) -> None:
        """It leaves."""
        ...

    def fail(self, error: Exception) -> bool | None:
        """The error leaves instead."""
        ...


class Held:
    """A reply or an error that waits for `offset` to be committed."""

    __slots__ = ("deadline_ms", "error", "offset", "pending", "response")

    def __init__(
        self,
        offset: int,
        deadline_ms: int,
        pending: AnyReply,
        response: AnyResponse,
        error: Exception | None,
    ) -> None:
        self.offset = offset
        self.deadline_ms = deadline_ms
        self.pending = pending
        self.response = response
        self.error = None if error is None else kept(error)

    def release(self) -> None:
        if self.error is not None:
            self.pending.fail(self.error)
        else:
            self.pending.complete(self.response)

    def fail(self, error: Exception) -> bool | None:
        return self.pending.fail(error)


class Parked(Held):
    """One that an earlier operation had parked, maybe one of many."""

    __slots__ = ()


class PartitionShard(Generic[S]):
    """A shard with what the runtime keeps about it. Offsets are exclusive ends."""

    __slots__ = (
        "__weakref__",
        "batch",
        "busy",
        "committed",
        "generation",
        "held",
        "held_timer",
        "last_written",
        "leader_epoch",
        "loading",
        "now_ms",
        "partition",
        "shard",
        "shard_timer",
        "shard_timer_ms",
        "state",
        "write_timeout_ms",
    )

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        shard: S,
        generation: int,
        write_timeout_ms: int,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.shard = shard
        self.write_timeout_ms = write_timeout_ms  # how long a reply is held
        # Tells callbacks of an earlier shard of this partition from ours.
        self.generation = generation
        self.state = ShardState.LOADING
        self.loading: Loading | None = None
        # The end of what was decided, written or about to be.
        self.last_written = 0
        self.batch: OpenBatch | None = None
        self.committed = 0
        self.now_ms = 0  # of the operation that runs, or ran last
        self.held: deque[HeldReply] = deque()
        self.held_timer: TimerHandle | None = None
        self.shard_timer: TimerHandle | None = None
        self.shard_timer_ms = 0
        # An operation is running: a high watermark that moves now releases nothing yet.
        self.busy = False

    @property
    def is_quiet(self) -> bool:
        """Whether it serves, and nothing is running, to be written or waiting."""
        return (
            self.state is ShardState.ACTIVE
            and not self.held
            and self.batch is None
            and not self.busy
        )

    def hold(
        self,
        pending: AnyReply,
        response: AnyResponse,
        error: Exception | None,
        kind: type[Held] = Held,
    ) -> None:
        """Keep a reply until all that is decided is committed."""
        deadline_ms = self.now_ms + self.write_timeout_ms
        self.held.append(kind(self.last_written, deadline_ms, pending, response, error))

    def release_committed(self, parked: TurnBudget) -> None:
        """Give out the replies whose offset is committed, in order; parked ones as
        many a turn as `parked` has. Those of the open batch wait for its append, whoever else
        moves the high watermark."""
        held = self.held
        while held:
            batch = self.batch
            offset = held[0].offset
            if offset > self.committed or (batch is not None and offset > batch.base_offset):
                return
            first = held.popleft()
            if type(first) is not Parked or parked.take():
                first.release()
            else:
                parked.wait(first.release)

    def release_overdue(self, now_ms: int) -> None:
        """Fail the replies that have waited too long; what they wait for still happens."""
        while self.held and self.held[0].deadline_ms <= now_ms:
            self.held.popleft().fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def cancel_timers(self) -> None:
        for handle in (self.held_timer, self.shard_timer):
            if handle is not None:
                handle.cancel()
        self.held_timer = self.shard_timer = None

    def loading_failed(self) -> None:
        self.loading = None
        self.state = ShardState.FAILED
        self.cancel_timers()

    def give_up(self) -> list[Failable]:
        """Detach everything that waits for this shard, oldest first; it is no longer used."""
        self.generation = -1
        if self.loading is not None:
            self.loading.cancel()
        self.state = ShardState.FAILED
        self.batch = None
        self.cancel_timers()
        waiting: list[Failable] = [*self.held]
        self.held.clear()
        waiting += self.shard.discard()
        return waiting


def unavailable(shard: PartitionShard[S] | None) -> KafkaError:
    """Why a shard that is not active serves no requests."""
    if shard is not None and shard.state is ShardState.LOADING:
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return KafkaError(ErrorCode.NOT_COORDINATOR)
