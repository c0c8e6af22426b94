"""A partition as a share group sees it: which records are in flight, and where they begin and end.

    start_offset        before it everything is done with (SPSO)
    end_offset          from here on nothing has been acquired yet (SPEO, exclusive)
    batches             what lies between, ascending; holes are offsets that the log does not have

Pure: time is a parameter. `acquire` hands out records (`acquisition.py`), `acknowledge`, `release`
and `expire` give a StateChange that has to be written by a persister; `written` says how that went,
and gives what has to be dead letters before it is archived. Reading a state, `opened`, makes the
partition active. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.changes import Acquired, DeadLetterCause, StateChange, Transition
from kwire.share.in_flight import InFlightBatch, Lock, RecordStatus, first_offset_of
from kwire.share.persister import StateBatch
from kwire.share.settings import ShareSettings
from kwire.share.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    FINAL,
    RecordState,
)

NO_OFFSET = -1


class SharePartition:
    """See the module. Not active before `opened`."""

    __slots__ = (
        "_locks",
        "_order",
        "_settings",
        "batches",
        "delivery_complete_count",
        "end_offset",
        "has_free",
        "is_active",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, settings: Callable[[], ShareSettings]) -> None:
        self._settings = settings
        self.is_active = False
        self.start_offset = 0
        self.end_offset = 0
        self.state_epoch = 0
        self.batches: list[InFlightBatch] = []
        self.has_free = False  # whether it is worth looking for free records
        self.delivery_complete_count = 0
        self._locks: list[Lock] = []  # a heap; those that hold no more are still in it
        self._order = 0

    @property
    def settings(self) -> ShareSettings:
        """The group's configs, as they are now."""
        return self._settings()

    # -- opening

    def opened(
        self, start_offset: int, state_epoch: int, batches: Sequence[StateBatch]
    ) -> list[Transition]:
        """What the share coordinator knows: the partition is active.

        Offsets it does not know of between its batches are free: they were acquired and nothing
        came of it, or the log does not have them. Returns what waits to be a dead letter.
        KafkaError UNKNOWN_SERVER_ERROR for a state that cannot be.
        """
        at = start_offset
        found: list[InFlightBatch] = []
        for batch in sorted(batches):
            if batch.first_offset < at or batch.last_offset < batch.first_offset:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"The state of the share partition has records {batch.first_offset} to "
                    f"{batch.last_offset} where {at} or more is next",
                )
            if batch.first_offset > at:
                found.append(InFlightBatch(at, batch.first_offset - 1, RecordStatus(AVAILABLE, 0)))
            status = RecordStatus(_known(batch.delivery_state), batch.delivery_count)
            if status.state is ACQUIRED:
                status.settle(AVAILABLE)
            found.append(InFlightBatch(batch.first_offset, batch.last_offset, status))
            at = batch.last_offset + 1
        self.batches = found
        self.start_offset = start_offset
        self.end_offset = at
        self.state_epoch = state_epoch
        self.has_free = bool(found)
        self.delivery_complete_count = sum(b.size for b in found if b.status.state in FINAL)
        self.is_active = True
        waiting = [
            Transition(
                batch.first_offset,
                batch.last_offset,
                ARCHIVING,
                batch.status.delivery_count,
                batch.status,
                DeadLetterCause.REJECTED
                if batch.status.delivery_count < self.settings.delivery_count_limit
                else DeadLetterCause.EXHAUSTED,
            )
            for batch in found
            if batch.status.state is ARCHIVING
        ]
        self.move_start()
        return waiting

    # -- positions

    @property
    def in_flight(self) -> int:
        """How many offsets count towards the limit of records in flight."""
        return self.end_offset - self.start_offset

    def next_fetch_offset(self) -> int:
        """The first offset that can be acquired; the end where nothing before it is free."""
        if self.has_free:
            for batch in self.batches:
                if batch.offsets is None:
                    if batch.status.is_free:
                        return batch.first_offset
                    continue
                for offset, status in batch.offsets.items():
                    if status.is_free:
                        return offset
            self.has_free = False
        return self.end_offset

    def can_acquire(self) -> bool:
        """Whether a read may be worth while: something is free, or there is room for more."""
        if not self.is_active:
            return False
        if self.in_flight < self.settings.record_locks_max:
            return True
        return self.next_fetch_offset() != self.end_offset

    def batch_at(self, offset: int) -> int:
        """Index of the last batch that begins at or before `offset`; -1 for none."""
        return bisect_right(self.batches, offset, key=first_offset_of) - 1

    def log_starts_at(self, offset: int) -> bool:
        """The log no longer has what is before `offset`; whether that moved the start."""
        if offset <= self.start_offset:
            return False
        self._begin_at(offset)
        self.move_start()
        return True

    def move_start(self) -> None:
        """Leave behind what is done with at the front."""
        at = self.start_offset
        for batch in self.batches:
            at = batch.first_offset
            if batch.offsets is None:
                if not batch.status.is_done:
                    break
            else:
                held = next((o for o, s in batch.offsets.items() if not s.is_done), None)
                if held is not None:
                    at = held
                    break
            at = batch.last_offset + 1
        else:
            at = self.end_offset
        if at > self.start_offset:
            self._begin_at(at)

    def _begin_at(self, offset: int) -> None:
        """Forget everything before `offset`."""
        done = 0
        gone = 0
        for batch in self.batches:
            if batch.first_offset >= offset:
                break
            for first, last, status in batch.statuses():
                if status.state in FINAL and first < offset:
                    done += min(last, offset - 1) - first + 1
                if last < offset:
                    status.lock = None
            if batch.last_offset < offset:
                gone += 1
            else:
                if batch.offsets is not None:
                    for known in range(batch.first_offset, offset):
                        del batch.offsets[known]
                batch.first_offset = offset
        del self.batches[:gone]
        self.delivery_complete_count -= done
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)

    # -- locks

    def lock(self, first: int, last: int, status: RecordStatus, now_ms: int) -> None:
        """What was acquired is the member's until the group's lock duration has passed."""
        self._lock_until(now_ms + self.settings.lock_duration_ms, first, last, status)

    def _lock_until(self, deadline_ms: int, first: int, last: int, status: RecordStatus) -> None:
        self._order += 1
        status.lock = Lock(deadline_ms, self._order, first, last, status)
        if len(self._locks) > 64 and len(self._locks) > 4 * self.in_flight:
            self._locks = [lock for lock in self._locks if lock.holds]
            heapq.heapify(self._locks)
        heapq.heappush(self._locks, status.lock)

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do."""
        locks = self._locks
        while locks and not locks[0].holds:
            heapq.heappop(locks)
        return locks[0].deadline_ms if locks else None

    def cut(self, batch: InFlightBatch, offset: int) -> InFlightBatch:
        """Make two of a free batch; returns the one that begins at `offset`."""
        status = batch.status
        assert batch.offsets is None, f"{batch} has states of records"
        assert status.is_free, f"{batch} is not free"
        behind = InFlightBatch(offset, batch.last_offset, status.copy())
        batch.last_offset = offset - 1
        batch.width = batch.size
        self.batches.insert(self.batch_at(offset) + 1, behind)
        return behind

    def split(self, batch: InFlightBatch) -> dict[int, RecordStatus]:
        """Give each record of a batch its own state."""
        if batch.offsets is not None:
            return batch.offsets
        whole = batch.status
        assert whole.before is None, f"{batch} is being written"
        offsets: dict[int, RecordStatus] = {}
        for offset in range(batch.first_offset, batch.last_offset + 1):
            offsets[offset] = status = whole.copy()
            if whole.lock is not None:
                self._lock_until(whole.lock.deadline_ms, offset, offset, status)
        whole.lock = None
        batch.offsets = offsets
        return offsets

    # -- given back

    def release(self, member_id: str) -> StateChange:
        """A member goes: what it had is free again."""
        transitions: list[Transition] = []
        for batch in self.batches:
            for first, last, status in batch.statuses():
                if status.state is ACQUIRED and status.member_id == member_id:
                    transitions.append(self.begin(first, last, status, AVAILABLE))
        return StateChange(tuple(transitions), can_fail=True)

    def expire(self, now_ms: int) -> StateChange:
        """Free what was locked until now. That holds whether it is written or not."""
        transitions: list[Transition] = []
        locks = self._locks
        while locks and (not locks[0].holds or locks[0].deadline_ms <= now_ms):
            lock = heapq.heappop(locks)
            lock.is_queued = False
            status = lock.status
            if not lock.holds or status.state is not ACQUIRED:
                continue  # what is being written looks for its lock again when that fails
            first = max(lock.first_offset, self.start_offset)
            state = self._settled(status, AVAILABLE)
            status.settle(state)
            self._count(first, lock.last_offset, state)
            self.has_free |= state is AVAILABLE
            transitions.append(_transition(first, lock.last_offset, status, state))
        if transitions:
            self.move_start()
        return StateChange(tuple(transitions), can_fail=False)

    def give_back(self, member_id: str, given: Acquired) -> None:
        """What a member acquired was not delivered. Its lock may have run out meanwhile: what
        was acquired once more since, by whomever, stays."""
        first, last, count = given
        for batch in self.between(first, last):
            for begin, end, status in batch.statuses():
                if (
                    begin >= first
                    and end <= last
                    and status.state is ACQUIRED
                    and status.member_id == member_id
                    and status.delivery_count == count
                ):
                    status.settle(AVAILABLE)
                    status.delivery_count -= 1
                    self.has_free = True

    # -- changes that are written

    def begin(self, first: int, last: int, status: RecordStatus, state: RecordState) -> Transition:
        """Begin a change of acquired records; ARCHIVING or ARCHIVED instead of AVAILABLE for what
        was delivered often enough."""
        settled = self._settled(status, state)
        status.begin(settled)
        self._count(first, last, settled)
        cause = None
        if settled is ARCHIVING:
            is_rejected = state is not AVAILABLE
            cause = DeadLetterCause.REJECTED if is_rejected else DeadLetterCause.EXHAUSTED
        return Transition(first, last, settled, status.delivery_count, status, cause)

    def _settled(self, status: RecordStatus, state: RecordState) -> RecordState:
        settings = self.settings
        if state is AVAILABLE and status.delivery_count >= settings.delivery_count_limit:
            return ARCHIVING if settings.has_dead_letters else ARCHIVED
        return state

    def take_back(self, transitions: Sequence[Transition]) -> None:
        """What was begun did not happen."""
        for transition in transitions:
            status = transition.status
            self._count(transition.first_offset, transition.last_offset, transition.state, -1)
            status.complete(is_written=False)
            if status.lock is not None and not status.lock.is_queued:
                status.lock.is_queued = True
                heapq.heappush(self._locks, status.lock)  # it was passed over

    def written(self, change: StateChange, is_written: bool) -> list[Transition]:
        """How the writing went; returns what has to be dead letters now.

        What can fail is taken back when it did; locks that expired meanwhile are for `expire`.
        """
        if not change.can_fail:
            return _archiving(change.transitions)
        if not is_written:
            self.take_back(change.transitions)
            return []
        for transition in change.transitions:
            transition.status.complete(is_written=True)
            if transition.state is AVAILABLE:
                self.has_free = True
        self.move_start()
        return _archiving(change.transitions)

    def dead(self, transition: Transition) -> StateChange:
        """Archived records have been dead letters, or cannot be."""
        status = transition.status
        if status.state is not ARCHIVING or transition.last_offset < self.start_offset:
            return StateChange((), can_fail=False)
        status.settle(ARCHIVED)
        first = max(transition.first_offset, self.start_offset)
        self._count(first, transition.last_offset, ARCHIVED)
        self.move_start()
        return StateChange(
            (_transition(first, transition.last_offset, status, ARCHIVED),), can_fail=False
        )

    def archive(self, first: int, last: int, state: RecordState) -> bool:
        """Archive what is in `state` from `first` to `last`: the log does not have it, or nobody is
        to see it. Whether there was any."""
        found = False
        for batch in list(self.between(first, last)):
            if batch.offsets is None:
                status = batch.status
                if status.state is not state or status.before is not None:
                    continue
                if state is AVAILABLE:
                    if batch.first_offset < first:
                        batch = self.cut(batch, first)
                        status = batch.status
                    if batch.last_offset > last:
                        self.cut(batch, last + 1)
                if batch.first_offset >= first and batch.last_offset <= last:
                    status.settle(ARCHIVED)
                    self._count(batch.first_offset, batch.last_offset, ARCHIVED)
                    found = True
                    continue
                self.split(batch)
            for offset, status in batch.within(first, last):
                if status.state is state and status.before is None:
                    status.settle(ARCHIVED)
                    self._count(offset, offset, ARCHIVED)
                    found = True
        return found

    def between(self, first: int, last: int) -> Iterator[InFlightBatch]:
        """Batches with an offset from `first` to `last`."""
        at = self.batch_at(first)
        if at < 0 or self.batches[at].last_offset < first:
            at += 1
        while at < len(self.batches) and self.batches[at].first_offset <= last:
            yield self.batches[at]
            at += 1

    def _count(self, first: int, last: int, state: RecordState, sign: int = 1) -> None:
        if state in FINAL:
            self.delivery_complete_count += sign * max(0, last - max(first, self.start_offset) + 1)


def _known(state: int) -> RecordState:
    try:
        return RecordState(state)
    except ValueError:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Records of a share partition are in state {state}"
        ) from None


def _transition(first: int, last: int, status: RecordStatus, state: RecordState) -> Transition:
    cause = DeadLetterCause.EXHAUSTED if state is ARCHIVING else None
    return Transition(first, last, state, status.delivery_count, status, cause)


def _archiving(transitions: Sequence[Transition]) -> list[Transition]:
    return [transition for transition in transitions if transition.state is ARCHIVING]
