"""A share partition that this broker leads: its state, the persister it is kept by, who waits.

It opens by reading the state; a group that has none begins where `share.auto.offset.reset` says.
Changes are written in their order, one write at a time: what comes meanwhile goes with the next
one. A write that is fenced ends it: the next fetch opens it anew. Locks expire by one timer, which
stands at the earliest of them. Who waits for records is woken in the order of waiting, until
nothing is left to acquire; a member whose fetch ended in vain does not lose its place, or those
that were served at the beginning would be served for ever where there are more members than a
wait's time is enough for. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from kwire.kept_errors import anew, kept
from kwire.log.scheduling import Timer
from kwire.log.types import READ_COMMITTED
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.share.acknowledgement import acknowledge
from kwire.share.changes import AcknowledgedBatch, FetchedBatch, StateChange, Transition
from kwire.share.counts import ShareCounts
from kwire.share.partition import SharePartition
from kwire.share.persister import (
    PartitionEpoch,
    PartitionResult,
    PartitionState,
    Persister,
    StateBatch,
    WritePartition,
)
from kwire.share.settings import ShareSettings

NO_OFFSET = -1
FIRST_READ_BYTES, READ_BYTES_MIN = 1 << 20, 1 << 16
"""Of a partition whose records are of unknown and of known size."""
UNSERVED_MAX = 10_000

FENCING = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST,  # the state was deleted
)
"""After these of the persister the share partition has to be opened anew."""

PERSISTER_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a client is told of an error of the persister."""


class Waiter(Protocol):
    """A share fetch that waits for records."""

    def woken(self) -> None:
        """Something may be there to acquire, or the share partition ended."""
        ...


class Deadlines(Protocol):
    """Timers."""

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer: ...


class DeadLetterWriter(Protocol):
    """Where archived records go before they are forgotten."""

    def write(self, led: LedPartition, transition: Transition) -> Pending[None]:
        """Done when the records are dead letters; fails when they cannot be."""
        ...


class Surroundings(Protocol):
    """What all share partitions of a broker have in common."""

    @property
    def persister(self) -> Persister: ...

    @property
    def deadlines(self) -> Deadlines: ...

    @property
    def dead_letters(self) -> DeadLetterWriter | None: ...

    @property
    def counts(self) -> ShareCounts: ...

    def now_ms(self) -> int: ...

    def settings(self, group_id: str) -> ShareSettings:
        """The group's configs, as they are now."""
        ...

    def reset_offset(self, partition: Partition, reset: str) -> int:
        """Where a group without state begins."""
        ...

    def ended(self, led: LedPartition) -> None:
        """The share partition is fenced: forget it."""
        ...

    def rested(self, led: LedPartition) -> None:
        """Something was written, buried or expired: the share partition may be idle now."""
        ...

    def wake(self, led: LedPartition) -> None:
        """Let `wake_waiters` run once, not within another's."""
        ...


class LedPartition:
    """See the module. `failure` is why it has ended."""

    __slots__ = (
        "_around",
        "_batch_bytes",
        "_begun_ms",
        "_changes",
        "_first",
        "_is_opening",
        "_is_wanted",
        "_is_writing",
        "_letters_under_way",
        "_record_bytes",
        "_timer",
        "_timer_ms",
        "_unserved",
        "expired_locks",
        "failure",
        "group_id",
        "is_fetching",
        "leader_epoch",
        "partition",
        "seen_offset",
        "state",
        "waiters",
    )

    def __init__(self, around: Surroundings, group_id: str, partition: Partition) -> None:
        self._around = around
        self.group_id = group_id
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = SharePartition(partial(around.settings, group_id))
        self.failure: KafkaError | None = None
        self.is_fetching = False  # one read at a time
        self.seen_offset = NO_OFFSET  # where a fetch last looked for records
        self.waiters: dict[Waiter, None] = {}
        self.expired_locks = 0  # records whose locks ran out
        self._begun_ms = 0
        self._first: dict[Waiter, None] = {}  # those of members that are unserved
        self._unserved: dict[str, None] = {}  # members whose last fetch waited in vain
        self._is_opening = False
        self._is_wanted = False
        self._changes: list[tuple[StateChange, Pending[None]]] = []
        self._is_writing = False
        self._letters_under_way = 0  # under way
        self._record_bytes = 0.0
        self._batch_bytes = 0
        self._timer: Timer | None = None
        self._timer_ms = 0

    def __repr__(self) -> str:
        return f"LedPartition({self.group_id} {self.partition})"

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits or has records, and nothing is being written or buried: the state
        that was written is all there is to know."""
        return not (
            self.waiters
            or self._changes
            or self._is_writing
            or self._letters_under_way
            or self.is_fetching
            or self.state.next_deadline_ms() is not None
        )

    # -- opening and ending

    def open(self) -> None:
        """Read the state, if that has not been done."""
        if self.state.is_active or self._is_opening or self.failure is not None:
            return
        self._is_opening = True
        self._begun_ms = self._around.now_ms()
        asked = PartitionEpoch(self.partition.topic_id, self.partition.index, self.leader_epoch)
        self._around.persister.read(self.group_id, [asked]).add_done_callback(self._read)

    def _read(self, done: Pending[list[PartitionState]]) -> None:
        self._is_opening = False
        if self.failure is not None:
            return
        try:
            found = done.result()[0]
            _check(found.error_code, found.error_message)
            start = found.start_offset
            if start == NO_OFFSET:
                start = self._around.reset_offset(self.partition, self.state.settings.reset)
            waiting = self.state.opened(start, found.state_epoch, found.state_batches)
        except KafkaError as error:
            self.end(error)
            return
        self._around.counts.loaded(self._around.now_ms() - self._begun_ms)
        self._write_dead_letters(waiting)
        self.wake()

    def end(self, error: KafkaError) -> None:
        """It is led elsewhere, fenced, deleted, or cannot be opened."""
        if self.failure is not None:
            return
        self.failure = kept(error)
        self.state.is_active = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.partition.data_listeners.pop(self, None)
        self._around.ended(self)
        self.wake()
        if not self._is_writing:
            self._fail_changes(error)

    # -- who waits

    def wait(self, waiter: Waiter, member_id: str) -> None:
        """Wake `waiter` when there may be records for it; before others when its member has waited
        in vain."""
        if not self.waiters:
            self.partition.data_listeners[self] = 0
            self.partition.is_in_order = False
        self.waiters[waiter] = None
        if member_id in self._unserved:
            self._first[waiter] = None

    def stop_waiting(self, waiter: Waiter) -> None:
        """Does nothing for one that does not wait."""
        self.waiters.pop(waiter, None)
        self._first.pop(waiter, None)
        if not self.waiters:
            self.partition.data_listeners.pop(self, None)

    def waited(self, member_id: str, is_served: bool) -> None:
        """A member's fetch is over: with records, or in vain."""
        if is_served:
            self._unserved.pop(member_id, None)
            return
        if len(self._unserved) >= UNSERVED_MAX:  # members whose sessions ended meanwhile
            self._unserved.clear()
        self._unserved[member_id] = None

    def has_records(self) -> bool:
        """Whether a read would find something that can be acquired."""
        log = self.partition.log
        if log is None:
            return False
        if self.is_fetching:
            self._is_wanted = True
            return False
        state = self.state
        if log.log_start_offset > state.start_offset and state.is_active:
            state.log_starts_at(log.log_start_offset)
        if not state.can_acquire():
            return False
        is_committed = state.settings.isolation_level == READ_COMMITTED
        end = log.last_stable_offset if is_committed else log.high_watermark
        return state.next_fetch_offset() < end

    def fetched(self) -> None:
        """A read is over: who was held off by it may try."""
        self.is_fetching = False
        if self._is_wanted:
            self._is_wanted = False
            self.wake()

    def bytes_for(self, fetch_offset: int, records: int) -> int:
        """How much to read from an offset on for so many records, those in flight between them
        included: what is read and not acquired was read in vain."""
        if not self._record_bytes:
            return FIRST_READ_BYTES
        offsets = max(0, self.state.end_offset - fetch_offset) + records
        needed = int(self._record_bytes * offsets * 1.5) + self._batch_bytes
        return max(READ_BYTES_MIN, needed)

    def was_read(self, fetched: Sequence[FetchedBatch]) -> None:
        """How large its records and batches are."""
        if fetched:
            offsets = fetched[-1].last_offset - fetched[0].base_offset + 1
            sizes = [batch.size_bytes for batch in fetched]
            self._record_bytes = sum(sizes) / max(1, offsets)
            self._batch_bytes = max(sizes)

    def wake(self) -> None:
        """Let those who wait have what there is: those of members that have waited in vain before,
        and then the longest waiting first."""
        if self.waiters:
            self._around.wake(self)

    def wake_waiters(self) -> None:
        """See `wake`."""
        for waiter in list({**self._first, **self.waiters}):
            if self.failure is None and not self.has_records():
                return
            if waiter in self.waiters:
                waiter.woken()

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        """See `replica.partition.DataListener`."""
        self.wake()

    def log_extended(self, partition: Partition, size_bytes: int) -> None:
        """See `replica.partition.DataListener`: followers' concern."""

    def partition_changed(self, partition: Partition) -> None:
        """See `replica.partition.DataListener`."""
        self.check_leadership()

    def check_leadership(self) -> None:
        """End when the partition is led elsewhere, or at another epoch."""
        partition = self.partition
        if not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            self.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # -- what members say

    def acknowledge(self, member_id: str, batches: Sequence[AcknowledgedBatch]) -> Pending[None]:
        """Done when it is written. Raises what `acknowledge` does, and why this has ended."""
        if self.failure is not None:
            raise anew(self.failure)
        if not self.state.is_active:
            # Nobody can have acquired anything yet.
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE)
        change = acknowledge(self.state, member_id, batches, self._around.now_ms())
        self.locks_changed()
        written = self._write(change)
        written.add_done_callback(partial(self._around.counts.acknowledged, batches))
        return written

    def release(self, member_id: str) -> Pending[None]:
        """A member goes: what it has is free when that is written."""
        self._unserved.pop(member_id, None)
        if not self.state.is_active:
            return Pending.completed(None)
        return self._write(self.state.release(member_id))

    # -- locks

    def locks_changed(self) -> None:
        """Something was acquired or renewed: expire it in time."""
        deadline_ms = self.state.next_deadline_ms()
        if deadline_ms is None or self.failure is not None:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._around.now_ms())
        self._timer = self._around.deadlines.add(delay_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        change = self.state.expire(self._around.now_ms())
        self.locks_changed()
        if change.transitions:
            self.expired_locks += sum(
                x.last_offset - x.first_offset + 1 for x in change.transitions
            )
            self._write(change)
            self.wake()
        self._around.rested(self)

    # -- writing

    def _write(self, change: StateChange) -> Pending[None]:
        done: Pending[None] = Pending()
        if not change.transitions:
            done.complete(None)
            return done
        self._changes.append((change, done))
        if not self._is_writing:
            self._write_changes()
        return done

    def _write_changes(self) -> None:
        changes, self._changes = self._changes, []
        self._is_writing = True
        partition, state = self.partition, self.state
        written = WritePartition(
            partition.topic_id,
            partition.index,
            state.state_epoch,
            self.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            [
                StateBatch(t.first_offset, t.last_offset, int(t.state), t.delivery_count)
                for change, _ in changes
                for t in change.transitions
            ],
        )

        def done(result: Pending[list[PartitionResult]]) -> None:
            ends = False
            try:
                answer = result.result()[0]
                ends = answer.error_code in FENCING
                _check(answer.error_code, answer.error_message)
            except KafkaError as failed:
                self._written(changes, failed, ends)
            else:
                self._written(changes, None, ends)

        self._around.persister.write(self.group_id, [written]).add_done_callback(done)

    def _written(
        self, changes: list[tuple[StateChange, Pending[None]]], error: KafkaError | None, ends: bool
    ) -> None:
        self._is_writing = False
        archiving: list[Transition] = []
        for change, _ in changes:
            archiving += self.state.written(change, error is None)
        if error is not None and ends:
            self.end(error)
        if self.failure is not None:
            self._fail_changes(self.failure)
        elif self._changes:
            self._write_changes()
        self.locks_changed()
        if self.failure is None:
            self._write_dead_letters(archiving)
        for _, done in changes:
            if error is None:
                done.complete(None)
            else:
                done.fail(error)
        if self.failure is None:
            self.wake()
            self._around.rested(self)

    def _fail_changes(self, error: KafkaError) -> None:
        changes, self._changes = self._changes, []
        for _, done in changes:
            done.fail(error)

    # -- dead letters

    def _write_dead_letters(self, transitions: list[Transition]) -> None:
        for transition in transitions:
            letters = self._around.dead_letters
            if letters is None:
                self._archive(transition)
            else:
                self._letters_under_way += 1
                letters.write(self, transition).add_done_callback(partial(self._done, transition))

    def _done(self, transition: Transition, done: Pending[None]) -> None:
        """Archived all the same where they cannot be written, as with Kafka."""
        self._letters_under_way -= 1
        self._archive(transition)

    def _archive(self, transition: Transition) -> None:
        if self.failure is None:
            self._write(self.state.dead(transition))
            self.wake()
            self._around.rested(self)


def _check(code: int, message: str | None) -> None:
    if code:
        error = PERSISTER_ERRORS.get(ErrorCode(code), ErrorCode.UNKNOWN_SERVER_ERROR)
        raise KafkaError(error, message or "")
