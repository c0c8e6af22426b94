"""A log against a model of it, under random appends, rolls, truncations, restarts and crashes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.log.partition.config import LogConfig
from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import World, client_batch, read_all

SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, segment_index_bytes=120)


class Model:
    """What the log has to hold: (offset, value) of all written records."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(seed, SMALL)
        self.records: list[tuple[int, bytes]] = []
        self.waiting: list[tuple[Any, list[tuple[int, bytes]]]] = []
        self.sequence = 0
        self.epoch = 0
        self.flushed = 0

    @property
    def end(self) -> int:
        return self.world.log.log_end_offset

    def append(self) -> None:
        count = self.random.randint(1, 6)
        value = self.random.randbytes(self.random.choice([1, 20, 90, 300]))
        options: dict[str, Any] = {}
        if self.random.random() < 0.4:
            options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": self.sequence}
            self.sequence += count
        info = self.world.append(count, value=value, epoch=self.epoch, **options)
        assert not info.duplicate
        assert info.last_offset - info.base_offset == count - 1
        new = [(info.base_offset + i, value) for i in range(count)]
        self.waiting.append((info.written, new))
        if self.random.random() < 0.5:
            self.turn()

    def turn(self) -> None:
        self.world.scheduler.turn()
        self.settle()
        assert not self.waiting

    def settle(self) -> None:
        """Take over what is written; it is so in the order of the appends."""
        while self.waiting and self.waiting[0][0].done:
            written, new = self.waiting.pop(0)
            assert written.error() is None
            self.records += new
        assert not any(written.done for written, _ in self.waiting)

    def large(self) -> None:
        value = self.random.randbytes(1800)
        try:
            info = self.world.append(1, value=value, epoch=self.epoch)
        except KafkaError as error:
            if error.code != ErrorCode.RECORD_LIST_TOO_LARGE:
                raise
            return
        self.waiting.append((info.written, [(info.base_offset, value)]))

    def roll(self) -> None:
        self.turn()
        self.world.log.roll()
        self.turn()

    def flush(self) -> None:
        self.turn()
        done = self.world.log.flush()
        self.turn()
        assert done.done
        assert done.error() is None
        assert self.world.log.recovery_point == self.end
        self.flushed = self.end

    def truncate(self) -> None:
        self.turn()
        bases = [r[0] for r in self.records]
        if not bases:
            return
        # Replicas truncate where a batch begins.
        offset = self.random.choice(self._batch_starts())
        self.world.log.truncate_to(offset)
        assert self.end == offset
        self.records = [r for r in self.records if r[0] < offset]
        self._forget_producer()
        self.flushed = min(self.flushed, offset)

    def _batch_starts(self) -> list[int]:
        from kwire.protocol.records import iterate_headers

        starts = []
        offset = self.world.log.log_start_offset
        while True:
            slices: Any = self.world.log.read(offset, 4096)
            if not slices.buffers:
                return [s for s in starts if s >= self.world.log.log_start_offset] or [self.end]
            for buffer in slices.buffers:
                starts += [header.base_offset for _, header in iterate_headers(buffer)]
            offset = slices.next_offset

    def _forget_producer(self) -> None:
        entry = self.world.log.producers.entries.get(7)
        known = -1 if entry is None else entry.last_sequence
        self.sequence = known + 1 if known >= 0 else 0

    def delete_records(self) -> None:
        self.turn()
        log = self.world.log
        log.update_high_watermark(self.random.randint(log.log_start_offset, self.end))
        offset = self.random.randint(log.log_start_offset, log.high_watermark)
        log.delete_records_before(offset)
        self.records = [r for r in self.records if r[0] >= offset]
        log.delete_old_segments(self.world.clock.now_ms)
        self.turn()

    def assign_epoch(self) -> None:
        self.turn()
        self.epoch += 1
        self.world.log.assign_epoch(self.epoch)

    def reopen(self) -> None:
        self.turn()
        log = self.world.log
        before = [(e.producer_id, e.last_sequence) for e in log.active_producers()]
        self.world.reopen()
        after = [(e.producer_id, e.last_sequence) for e in self.world.log.active_producers()]
        assert after == before
        self.flushed = self.end

    def kill(self) -> None:
        """What was written survives; what still waited for the end of the turn is gone."""
        self.settle()
        self.waiting.clear()
        log = self.world.log
        point = self.random.choice([0, None, log.recovery_point])
        self.world.kill(recovery_point=point, log_start_offset=log.log_start_offset)
        self._forget_producer()
        self.epoch = max(self.epoch, self.world.log.leader_epochs.latest)

    def power_cut(self) -> None:
        """What was flushed survives, of the rest whole batches from the beginning."""
        self.settle()
        self.waiting.clear()
        log = self.world.log
        point = self.random.choice([0, self.flushed])
        start = log.log_start_offset
        self.world.disk.crash()
        self.world.open(recovery_point=point, log_start_offset=start)
        end = self.end
        assert end >= min(self.flushed, max(end, start))
        assert end >= self.flushed or start > end
        found = read_all(self.world.log)
        kept = [r for r in self.records if r[0] < end and r[0] >= self.world.log.log_start_offset]
        assert found == kept
        self.records = kept
        self.flushed = min(self.flushed, end)
        self._forget_producer()

    def check(self) -> None:
        self.settle()
        log = self.world.log
        assert read_all(log) == self.records
        assert read_all(log, bytes_max=self.random.choice([1, 70, 500])) == self.records
        offset = self.random.randint(0, self.end + 1)
        if log.log_start_offset <= offset <= self.end:
            slices: Any = log.read(offset, 300, isolation=Isolation.HIGH_WATERMARK)
            assert slices.high_watermark <= self.end
        else:
            with pytest.raises(KafkaError) as caught:
                log.read(offset, 300)
            assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


STEPS = (
    ["append"] * 12
    + ["turn"] * 4
    + ["large", "roll", "flush", "truncate", "delete_records", "assign_epoch"]
    + ["reopen", "kill", "power_cut", "check", "check"]
)


def _run(seed: int, steps: int) -> None:
    model = Model(seed)
    history = []
    for _ in range(steps):
        step = model.random.choice(STEPS)
        history.append(step)
        try:
            getattr(model, step)()
        except Exception as error:
            error.add_note(f"seed {seed}, after {history}")
            raise
    model.turn()
    model.check()


@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed: int) -> None:
    _run(seed, 120)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1000, 10**9))
def test_more_random_histories(seed: int) -> None:
    _run(seed, 50)


def test_the_model_can_fail() -> None:
    """A log that loses a record is noticed."""
    model = Model(1)
    model.append()
    model.turn()
    model.records.append((99, b"never written"))
    with pytest.raises(AssertionError):
        model.check()


def test_batches_share_one_write() -> None:
    world = World()
    writes = []
    world.disk.fault = lambda operation, path: (
        writes.append(path) if operation == "pwritev" and path.endswith(".log") else None
    )
    infos = [world.append() for _ in range(10)]
    assert not writes
    assert not any(info.written.done for info in infos)
    assert world.log.log_end_offset == 0
    world.scheduler.turn()
    assert len(writes) == 1
    assert all(info.written.done for info in infos)
    assert world.log.log_end_offset == 10


def test_a_large_batch_is_written_at_once_behind_the_small_ones() -> None:
    world = World()
    small = world.append()
    large = world.append(1, value=bytes(40_000))
    assert small.written.done
    assert large.written.done
    assert [offset for offset, _ in read_all(world.log)] == [0, 1]


def test_memory_of_a_small_batch_may_be_reused_at_once() -> None:
    world = World()
    buffer = bytearray(client_batch(2))
    world.log.append_as_leader(memoryview(buffer), leader_epoch=0)
    buffer[:] = bytes(len(buffer))
    world.scheduler.turn()
    assert read_all(world.log) == [(0, b"value"), (1, b"value")]
