"""Records in flight: a batch of them with one state, or with one for each offset.

A batch is what was acquired at once. It has one `RecordStatus` as long as all its records share
their fate; what touches a part of them gives each offset its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.share.states import (
    ACQUIRED,
    AVAILABLE,
    FINAL,
    TRANSITIONS,
    RecordState,
)

NO_MEMBER = ""


class Lock:
    """Until when a member has what it acquired. It counts as long as its status refers to it.
    `is_queued` says whether it stands among those that are to expire, once."""

    __slots__ = ("deadline_ms", "first_offset", "is_queued", "last_offset", "order", "status")

    def __init__(
        self,
        deadline_ms: int,
        order: int,
        first_offset: int,
        last_offset: int,
        status: RecordStatus,
    ) -> None:
        self.deadline_ms = deadline_ms
        self.order = order
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.status = status
        self.is_queued = True

    def __lt__(self, other: Lock) -> bool:
        return (self.deadline_ms, self.order) < (other.deadline_ms, other.order)

    @property
    def holds(self) -> bool:
        """Whether the records are still acquired under this lock."""
        return self.status.lock is self


class RecordStatus:
    """State of a batch or of one record. `before` is what a write that fails goes back to."""

    __slots__ = ("before", "delivery_count", "lock", "member_id", "state")

    def __init__(self, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock: Lock | None = None
        self.before: tuple[RecordState, str] | None = None

    def __repr__(self) -> str:
        writing = "" if self.before is None else f" from {self.before[0].name}"
        return f"RecordStatus({self.state.name}{writing} {self.delivery_count} {self.member_id!r})"

    @property
    def is_free(self) -> bool:
        """Whether it can be acquired."""
        return self.state is AVAILABLE and self.before is None

    @property
    def is_done(self) -> bool:
        """Whether it is final, and written so."""
        return self.state in FINAL and self.before is None

    def acquire(self, member_id: str) -> None:
        """A member gets it; that counts as a delivery."""
        self._move(ACQUIRED)
        self.member_id = member_id
        self.delivery_count += 1

    def settle(self, state: RecordState) -> None:
        """The member has it no more."""
        self._move(state)
        self.member_id = NO_MEMBER
        self.lock = None

    def begin(self, state: RecordState) -> None:
        """As `settle`, until `complete` says whether it is written; the lock stays meanwhile."""
        before = self.state, self.member_id
        self._move(state)
        self.member_id = NO_MEMBER
        self.before = before

    def complete(self, is_written: bool) -> None:
        """What was begun holds, or did not happen."""
        assert self.before is not None
        if is_written:
            self.lock = None
        else:
            self.state, self.member_id = self.before
        self.before = None

    def copy(self) -> RecordStatus:
        """Of one record of a batch."""
        return RecordStatus(self.state, self.delivery_count, self.member_id)

    def _move(self, state: RecordState) -> None:
        assert self.before is None, f"{self}: its last change is not written yet"
        assert state in TRANSITIONS[self.state], f"{self} cannot become {state.name}"
        self.state = state


class InFlightBatch:
    """Records `first_offset` to `last_offset`; `offsets` has a status each where they differ.

    `width` is how many they were before the first of them were done with: how much is handed out at
    once of a batch that was delivered often depends on it (measured on Apache Kafka 4.4).
    """

    __slots__ = ("first_offset", "last_offset", "offsets", "status", "width")

    def __init__(self, first_offset: int, last_offset: int, status: RecordStatus) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.status = status
        self.width = last_offset - first_offset + 1
        self.offsets: dict[int, RecordStatus] | None = None

    def __repr__(self) -> str:
        return (
            f"InFlightBatch({self.first_offset}-{self.last_offset} {self.offsets or self.status})"
        )

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1

    def statuses(self) -> Iterator[tuple[int, int, RecordStatus]]:
        """(first offset, last offset, status), ascending."""
        if self.offsets is None:
            yield self.first_offset, self.last_offset, self.status
            return
        for offset, status in self.offsets.items():
            yield offset, offset, status

    def within(self, first: int, last: int) -> Iterator[tuple[int, RecordStatus]]:
        """(offset, status) of the records with a status each, from `first` to `last`."""
        assert self.offsets is not None
        for offset in range(max(first, self.first_offset), min(last, self.last_offset) + 1):
            yield offset, self.offsets[offset]


def first_offset_of(batch: InFlightBatch) -> int:
    """The order of batches."""
    return batch.first_offset
