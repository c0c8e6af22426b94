"""Random histories of a share partition beside a model that knows nothing but single records."""

from __future__ import annotations

import dataclasses
import os
import random

import pytest
from hypothesis import given, settings, strategies

from kwire.protocol.errors import KafkaError
from kwire.share.acknowledgement import acknowledge
from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import (
    AcknowledgedBatch,
    AcquireMode,
    FetchedBatch,
    StateChange,
    Transition,
)
from kwire.share.partition import SharePartition
from kwire.share.persister import StateBatch
from kwire.share.settings import ShareSettings
from kwire.share.states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    FINAL,
    RecordState,
)

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))
MEMBERS = ("a", "b", "c")
LOCK_MS = 100


@dataclasses.dataclass
class Known:
    """One record, as the model has it."""

    state: RecordState = AVAILABLE
    count: int = 0
    member: str = ""
    deadline_ms: int = 0
    before: tuple[RecordState, str] | None = None

    @property
    def is_free(self) -> bool:
        return self.state is AVAILABLE and self.before is None


class History:
    """A partition, its log, its model, and the state that a coordinator would have."""

    def __init__(self, seed: int, limit: int, locks: int, dead_letters: bool) -> None:
        self.random = random.Random(seed)
        self.settings = ShareSettings(
            lock_duration_ms=LOCK_MS,
            delivery_count_limit=limit,
            record_locks_max=locks,
            has_dead_letters=dead_letters,
        )
        self.partition = SharePartition(lambda: self.settings)
        self.partition.opened(0, 0, ())
        self.log: list[FetchedBatch] = []
        self.log_start = self.log_end = 0
        self.now_ms = 0
        self.known: dict[int, Known] = {}
        self.writing: list[StateChange] = []
        self.dying: list[Transition] = []
        self.stored: dict[int, tuple[int, int]] = {}
        self.accepted: set[int] = set()
        self.rejected: set[int] = set()
        self.buried: set[int] = set()

    # -- the log

    def append(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            size = self.random.choice((1, 1, 3, 10, 30))
            if self.random.random() < 0.1:
                self.log_end += self.random.randint(1, 5)  # what compaction leaves
            batch = FetchedBatch(self.log_end, self.log_end + size - 1, size * 10)
            self.log.append(batch)
            self.log_end += size

    def compact(self) -> None:
        if self.log:
            del self.log[self.random.randrange(len(self.log))]

    def delete_records(self) -> None:
        self.log_start = self.random.randint(self.log_start, self.log_end)
        self.log = [batch for batch in self.log if batch.last_offset >= self.log_start]
        self.partition.log_starts_at(self.log_start)

    # -- the partition

    def acquire(self) -> None:
        partition = self.partition
        if not partition.can_acquire():
            return
        offset = partition.next_fetch_offset()
        if offset < self.log_start:
            partition.log_starts_at(self.log_start)
            return
        fetched = [batch for batch in self.log if batch.last_offset >= offset]
        fetched = fetched[: self.random.randint(1, 5)]
        if not fetched:
            return
        ask = Ask(
            self.random.choice(MEMBERS),
            self.random.choice(tuple(AcquireMode)),
            self.random.choice((1, 5, 20)),
            self.random.choice((1, 2, 7, 50)),
        )
        if offset < fetched[0].base_offset:
            for hole in range(offset, fetched[0].base_offset):
                record = self.known.get(hole)
                if record is not None and record.is_free:
                    record.state = ARCHIVED
        total = 0
        for first, last, count in acquire(partition, ask, offset, fetched, self.now_ms):
            assert first >= fetched[0].base_offset or first >= partition.start_offset
            assert last <= fetched[-1].last_offset
            for at in range(first, last + 1):
                record = self.known.setdefault(at, Known())
                assert record.is_free, (at, record)
                assert at not in self.accepted
                record.state, record.member = ACQUIRED, ask.member_id
                record.count += 1
                record.deadline_ms = self.now_ms + LOCK_MS
                assert record.count == count <= self.settings.delivery_count_limit
                total += 1
        if ask.mode is AcquireMode.RECORD_LIMIT:
            assert total <= ask.records_max

    def said(self) -> list[AcknowledgedBatch]:
        """Mostly what somebody has, in pieces; sometimes anything."""
        end = self.partition.end_offset + 2
        if self.random.random() < 0.15:
            first = self.random.randint(max(0, self.partition.start_offset - 5), end)
            return [AcknowledgedBatch(first, first + self.random.randint(0, 5), [1])]
        mine = [at for at, record in self.known.items() if record.state is ACQUIRED]
        if not mine:
            return []
        at = self.random.choice(mine)
        member = self.known[at].member
        batches, first = [], at
        for _ in range(self.random.randint(1, 3)):
            last = first
            size = self.random.choice((1, 3, 40))
            while last - first + 1 < size and self._has(member, last + 1):
                last += 1
            types = [self.random.randint(0, 4)]
            if self.random.random() < 0.5:
                types = [self.random.randint(0, 4) for _ in range(last - first + 1)]
            batches.append(AcknowledgedBatch(first, last, types))
            first = last + 1
            if not self._has(member, first):
                break
        return batches

    def _has(self, member: str, at: int) -> bool:
        record = self.known.get(at)
        return record is not None and record.state is ACQUIRED and record.member == member

    def acknowledge(self) -> None:
        batches = self.said()
        if not batches:
            return
        owner = self.known.get(batches[0].first_offset)
        member = owner.member if owner is not None and owner.member else "a"
        if self.random.random() < 0.1:
            member = self.random.choice(MEMBERS)
        try:
            change = acknowledge(self.partition, member, batches, self.now_ms)
        except KafkaError:
            assert not all(
                self._has(member, at) or at < self.partition.start_offset
                for batch in batches
                for at in range(batch.first_offset, batch.last_offset + 1)
            )
            self.resync_locks()
            return
        for batch in batches:
            for at in range(batch.first_offset, batch.last_offset + 1):
                if at < self.partition.start_offset:
                    continue
                if at not in self.known:
                    continue
                assert self._has(member, at), at
                kind = batch.types[at - batch.first_offset if len(batch.types) > 1 else 0]
                self.settle(at, kind)
        self.write(change)

    def resync_locks(self) -> None:
        """A refused acknowledgement may have renewed locks before."""
        for batch in self.partition.batches:
            for first, last, status in batch.statuses():
                for at in range(first, last + 1):
                    if status.lock is not None and at in self.known:
                        self.known[at].deadline_ms = status.lock.deadline_ms

    def settle(self, at: int, kind: int) -> None:
        record = self.known[at]
        if kind == 4:
            record.deadline_ms = self.now_ms + LOCK_MS
            return
        dead = ARCHIVING if self.settings.has_dead_letters else ARCHIVED
        state = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: dead}[kind]
        if state is AVAILABLE and record.count >= self.settings.delivery_count_limit:
            state = dead
        record.before = record.state, record.member
        record.state, record.member = state, ""

    def write(self, change: StateChange) -> None:
        for transition in change.transitions:
            assert transition.last_offset >= transition.first_offset
        if change.transitions:
            self.writing.append(change)

    def release(self) -> None:
        member = self.random.choice(MEMBERS)
        change = self.partition.release(member)
        for at, record in self.known.items():
            if record.member == member and at >= self.partition.start_offset:
                self.settle(at, 2)
        self.write(change)

    def finish_write(self) -> None:
        if not self.writing:
            return
        change = self.writing.pop(0)  # the order of writing is kept
        works = self.random.random() < 0.7
        self.dying += self.partition.written(change, works)
        if works:
            self.store(change)
        if not change.can_fail:
            return
        for transition in change.transitions:
            for at in range(transition.first_offset, transition.last_offset + 1):
                record = self.known[at]
                assert record.before is not None or at < self.partition.start_offset
                if record.before is None:
                    continue
                if not works:
                    record.state, record.member = record.before
                elif record.state is ACKNOWLEDGED:
                    self.accepted.add(at)
                elif record.state is ARCHIVED:
                    self.rejected.add(at)
                record.before = None

    def store(self, change: StateChange) -> None:
        for transition in change.transitions:
            for at in range(transition.first_offset, transition.last_offset + 1):
                self.stored[at] = int(transition.state), transition.delivery_count

    def bury(self) -> None:
        if self.dying:
            transition = self.dying.pop(self.random.randrange(len(self.dying)))
            start = self.partition.start_offset
            change = self.partition.dead(transition)
            for at in range(transition.first_offset, transition.last_offset + 1):
                self.buried.add(at)
                if at >= start:
                    assert self.known[at].state is ARCHIVING
                    self.known[at].state = ARCHIVED
            self.write(change)

    def expire(self) -> None:
        self.now_ms += self.random.choice((1, 30, 120))
        start = self.partition.start_offset
        change = self.partition.expire(self.now_ms)
        dead = ARCHIVING if self.settings.has_dead_letters else ARCHIVED
        for at, record in self.known.items():
            if record.state is ACQUIRED and record.deadline_ms <= self.now_ms and at >= start:
                spent = record.count >= self.settings.delivery_count_limit
                record.state, record.member = dead if spent else AVAILABLE, ""
        self.write(change)

    def fail_over(self) -> None:
        """Another leader reads what is stored."""
        start = self.partition.start_offset
        batches = [
            StateBatch(at, at, state, count)
            for at, (state, count) in sorted(self.stored.items())
            if at >= start
        ]
        self.writing.clear()
        self.partition = SharePartition(lambda: self.settings)
        self.dying = self.partition.opened(start, 0, batches)
        for at in range(start, max(self.known, default=0) + 1):
            if at >= self.partition.end_offset:
                self.known.pop(at, None)
                continue
            state, count = self.stored.get(at, (0, 0))
            self.known[at] = Known(RecordState(state), count)

    # -- what must hold

    def check(self) -> None:
        partition = self.partition
        at = partition.start_offset
        done = 0
        for batch in partition.batches:
            assert batch.first_offset >= at
            assert batch.last_offset >= batch.first_offset
            for first, last, status in batch.statuses():
                done += (last - first + 1) * (status.state in FINAL)
                for offset in range(first, last + 1):
                    record = self.known.setdefault(offset, Known())
                    assert (record.state, record.member, record.count, record.before) == (
                        *(status.state, status.member_id, status.delivery_count),
                        status.before,
                    ), offset
                    if status.state is ACQUIRED:
                        assert status.lock is not None
                        assert status.lock.deadline_ms == record.deadline_ms
                        next_ms = partition.next_deadline_ms()
                        assert next_ms is not None
                        assert next_ms <= record.deadline_ms
            at = batch.last_offset + 1
        assert at <= partition.end_offset
        assert done == partition.delivery_complete_count
        free = min((o for o, r in self.known.items() if r.is_free and self._kept(o)), default=None)
        assert partition.next_fetch_offset() == (partition.end_offset if free is None else free)

    def _kept(self, offset: int) -> bool:
        return self.partition.start_offset <= offset < self.partition.end_offset

    def drain(self) -> None:
        """One good member is left: everything comes to its end."""
        for _ in range(10_000):
            while self.writing:
                self.finish_write()
            while self.dying:
                self.bury()
                while self.writing:
                    self.finish_write()
            partition = self.partition
            if partition.start_offset < self.log_start:
                partition.log_starts_at(self.log_start)
            offset = partition.next_fetch_offset()
            fetched = [batch for batch in self.log if batch.last_offset >= offset]
            if not fetched and partition.start_offset == partition.end_offset:
                break
            if fetched and offset < fetched[0].base_offset:
                for hole in range(offset, fetched[0].base_offset):
                    if self.known.get(hole, Known(ACQUIRED)).is_free:
                        self.known[hole].state = ARCHIVED
            ask = Ask("z", AcquireMode.BATCH_OPTIMIZED, 500, 500)
            acquired = acquire(partition, ask, offset, fetched, self.now_ms)
            for first, last, count in acquired:
                for at in range(first, last + 1):
                    assert at not in self.accepted
                    self.known[at] = Known(ACQUIRED, count, "z", self.now_ms + LOCK_MS)
                self.write(acknowledge(partition, "z", [AcknowledgedBatch(first, last, [1])], 0))
                for at in range(first, last + 1):
                    self.settle(at, 1)
            if not acquired and not self.writing:
                if not fetched:
                    partition.archive(offset, partition.end_offset, AVAILABLE)
                    partition.move_start()
                self.expire()
        else:
            pytest.fail(f"it does not end: {self.partition.batches}")
        kept = {at for b in self.log for at in range(b.base_offset, b.last_offset + 1)}
        for at in kept:
            if at >= self.log_start and at < self.partition.end_offset and at in self.known:
                assert self.known[at].state in FINAL, at


STEPS = (
    *("append", "acquire", "acquire", "acquire", "acknowledge", "acknowledge", "acknowledge"),
    *("finish_write", "finish_write", "finish_write", "bury", "release", "expire"),
)
RARE = ("compact", "delete_records", "fail_over")


@settings(max_examples=60 * EFFORT, deadline=None)
@given(
    seed=strategies.integers(0, 2**32),
    limit=strategies.integers(2, 7),
    locks=strategies.sampled_from((10, 60, 2000)),
    dead_letters=strategies.booleans(),
)
def test_random_histories_agree_with_the_model(
    seed: int, limit: int, locks: int, dead_letters: bool
) -> None:
    history = History(seed, limit, locks, dead_letters)
    for _ in range(120):
        step = history.random.choice(RARE if history.random.random() < 0.06 else STEPS)
        getattr(history, step)()
        history.check()
    history.drain()
