"""A read of many partitions holds the loop for some of them at a time, and misses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log.types import Isolation
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.replica import bounded_read, delayed_read
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import DelayedRead, ReadContext
from kwire.replica.partition import Partition
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.slices import Slices
from tests.support.connections import TurningLoop
from tests.support.replica_world import NOW_MS, World
from tests.support.replicas import TOPIC_ID, Position, Timer

PARTITIONS = 6
SLICE = 2
FOLLOWER = 2


def _limits(
    replica_id: int = -1,
    wait_ms: int = 500,
    bytes_min: int = 1,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
) -> ReadLimits:
    if replica_id >= 0:
        isolation = Isolation.LOG_END
    return ReadLimits(bytes_min, 1 << 20, wait_ms, isolation, replica_id)


class Reading:
    """A read of all partitions from their ends, in slices."""

    def __init__(self, world: World, limits: ReadLimits) -> None:
        self.world = world
        self.loop = TurningLoop()
        self.done = 0
        self.failures: list[Exception] = []
        self.timers: list[Timer] = []
        self.targets = [
            ReadTarget(world.partition(index), Position(0)) for index in range(PARTITIONS)
        ]
        self.context = ReadContext(self, self._exists)
        slices = Slices(self.loop.call_soon)
        self.read = DelayedRead(
            self.context, self.targets, limits, self._done, slices, self.failures.append
        )
        self.read.start()

    def _exists(self, topic: str, index: int) -> bool:
        return self.world.image.topics.partition(topic, index) is not None

    def _done(self) -> None:
        self.done += 1

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See Deadlines."""
        self.timers.append(Timer(callback))
        return self.timers[-1]

    def turn(self, count: int) -> None:
        for _ in range(count):
            self.loop.turn()

    def is_over(self) -> bool:
        """Whether it listens to nothing and has no timer."""
        return (
            self.context.waiting == 0
            and not any(target.partition.data_listeners for target in self.targets)
            and all(timer.callback is None for timer in self.timers)
        )

    def turns(self) -> int:
        """Until nothing is under way; each partition is read or listened to by slices."""
        turns = 0
        while self.loop.soon:
            self.loop.turn()
            turns += 1
        return turns

    def found(self) -> list[int]:
        """The partitions with records."""
        return [at for at, target in enumerate(self.targets) if target.result.size_bytes]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for module in (bounded_read, delayed_read):
        monkeypatch.setattr(module, "SLICE_PARTITIONS", SLICE)
    world = World(tmp_path)
    world.create([1, FOLLOWER], partitions=PARTITIONS)
    return world


def _append(world: World, index: int) -> None:
    """A record that all replicas have."""
    world.append(index=index, acks=1)
    world.scheduler.turn()
    partition = world.partition(index)
    partition.follower_fetched(FOLLOWER, -1, 1, 0)
    assert partition.state.high_watermark == 1


def test_a_slice_reads_some_partitions_and_then_the_loop_has_its_turn(world: World) -> None:
    _append(world, 0)
    reading = Reading(world, _limits(wait_ms=0))
    for read in (0, SLICE, 2 * SLICE, PARTITIONS):
        is_read = [target.result.high_watermark >= 0 for target in reading.targets]
        assert is_read == [True] * read + [False] * (PARTITIONS - read)
        reading.loop.turn()
    assert (reading.done, reading.found()) == (1, [0])


@pytest.mark.parametrize("turns", range(1, 8))
@pytest.mark.parametrize("index", [0, PARTITIONS - 1])
def test_what_arrives_between_the_slices_is_not_missed(
    world: World, turns: int, index: int
) -> None:
    reading = Reading(world, _limits())
    for _ in range(turns):
        reading.loop.turn()
    _append(world, index)
    reading.turns()
    assert (reading.done, reading.found()) == (1, [index])
    assert reading.context.waiting == 0
    assert not any(target.partition.data_listeners for target in reading.targets)


@pytest.mark.parametrize("turns", range(1, 8))
def test_a_follower_misses_no_end_of_a_log_between_the_slices(world: World, turns: int) -> None:
    reading = Reading(world, _limits(FOLLOWER))
    for _ in range(turns):
        reading.loop.turn()
    world.append(index=0, acks=1)
    world.scheduler.turn()
    reading.turns()
    assert (reading.done, reading.found()) == (1, [0])


@pytest.mark.parametrize("turns", range(1, 8))
def test_who_leads_no_more_between_the_slices_ends_the_wait(world: World, turns: int) -> None:
    reading = Reading(world, _limits())
    for _ in range(turns):
        reading.loop.turn()
    world.change(0, leader=FOLLOWER)
    reading.turns()
    assert reading.done == 1
    assert reading.targets[0].result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("turns", range(8))
def test_a_topic_that_goes_between_the_slices_is_unknown(world: World, turns: int) -> None:
    reading = Reading(world, _limits())
    for _ in range(turns):
        reading.loop.turn()
    world.apply(m.RemoveTopicRecord(topic_id=TOPIC_ID))
    reading.turns()
    assert reading.done == 1
    assert reading.targets[-1].result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("turns", range(9))
def test_a_read_that_nobody_wants_ends_where_it_is(world: World, turns: int) -> None:
    reading = Reading(world, _limits())
    for _ in range(turns):
        reading.loop.turn()
    reading.read.cancel()
    assert reading.turns() <= 1
    _append(world, 0)
    assert reading.done == 0
    assert reading.context.waiting == 0
    assert not any(target.partition.data_listeners for target in reading.targets)


def _append_bytes(world: World, index: int) -> int:
    """One more record that all replicas have: the size of its batch."""
    size_bytes: int = world.append(index=index, acks=1).size_bytes
    world.scheduler.turn()
    partition = world.partition(index)
    assert partition.log is not None
    partition.follower_fetched(FOLLOWER, -1, partition.log.log_end_offset, 0)
    return size_bytes


@pytest.mark.parametrize("turns", range(1, 9))
@pytest.mark.parametrize("index", [0, PARTITIONS - 1])
def test_less_than_is_asked_for_does_not_end_the_wait(world: World, turns: int, index: int) -> None:
    size_bytes = _append_bytes(world, index)
    reading = Reading(world, _limits(bytes_min=3 * size_bytes))
    reading.turn(turns)
    _append_bytes(world, 0)
    reading.turns()
    assert (reading.done, reading.context.waiting) == (0, 1)
    _append_bytes(world, 1)
    reading.turns()
    found = [target.result.size_bytes for target in reading.targets]
    assert (reading.done, sum(found)) == (1, 3 * size_bytes)
    assert reading.is_over()


@pytest.mark.parametrize("turns", range(1, 9))
def test_what_arrives_between_the_slices_counts(world: World, turns: int) -> None:
    size_bytes = _append_bytes(world, 0)
    reading = Reading(world, _limits(bytes_min=2 * size_bytes))
    reading.turn(turns)
    _append_bytes(world, 0)
    reading.turns()
    assert (reading.done, reading.targets[0].result.size_bytes) == (1, 2 * size_bytes)
    assert reading.is_over()


@pytest.mark.parametrize("turns", range(1, 9))
def test_what_arrives_for_a_follower_between_the_slices_counts(world: World, turns: int) -> None:
    size_bytes: int = world.append(index=0, acks=1).size_bytes
    world.scheduler.turn()
    reading = Reading(world, _limits(FOLLOWER, bytes_min=2 * size_bytes))
    reading.turn(turns)
    world.append(index=0, acks=1)
    world.scheduler.turn()
    reading.turns()
    assert (reading.done, reading.targets[0].result.size_bytes) == (1, 2 * size_bytes)
    assert reading.is_over()


def _append_in_transaction(world: World, sequence: int) -> None:
    partition = world.partition(0)
    assert partition.log is not None
    batch = build_batch(
        [Record(0, NOW_MS, None, b"value", [])],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    guard = partition.log.begin_verification(7, 0, sequence=sequence)
    partition.append(batch, acks=1, wall_ms=NOW_MS, guard=guard)
    world.scheduler.turn()
    partition.follower_fetched(FOLLOWER, -1, partition.log.log_end_offset, 0)


@pytest.mark.parametrize("turns", range(1, 9))
def test_an_open_transaction_does_not_end_the_wait_of_read_committed(
    world: World, turns: int
) -> None:
    _append_in_transaction(world, 0)
    reading = Reading(world, _limits(isolation=Isolation.COMMITTED))
    reading.turn(turns)
    _append_in_transaction(world, 1)
    reading.turns()
    assert (reading.done, reading.context.waiting) == (0, 1)
    _append_bytes(world, 1)
    reading.turns()
    assert (reading.done, reading.found()) == (1, [1])
    assert reading.is_over()


@pytest.mark.parametrize("turns", range(1, 8))
def test_who_leads_again_between_the_slices_ends_the_wait(world: World, turns: int) -> None:
    reading = Reading(world, _limits())
    reading.turn(turns)
    world.change(0, leader=FOLLOWER)
    world.change(0, leader=1)
    reading.turns()
    assert (reading.done, world.partition(0).traffic.fetch_requests) == (1, 2 * PARTITIONS)
    assert reading.is_over()


@pytest.mark.parametrize("failing", range(PARTITIONS))
@pytest.mark.parametrize("is_second", [False, True])
def test_a_read_that_raises_ends_it_with_that_error(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: int, is_second: bool
) -> None:
    read = Partition.read
    error = RuntimeError("no error of a partition")

    def failed(partition: Partition, *asked: object) -> object:
        if partition.index == failing:
            raise error
        return read(partition, *asked)  # type: ignore[arg-type]

    reading = Reading(world, _limits())
    if is_second:
        reading.turns()
    monkeypatch.setattr(Partition, "read", failed)
    if is_second:
        _append(world, 0)
    reading.turns()
    assert [str(each) for each in reading.failures] == [str(error)]
    assert reading.done == 0
    assert reading.is_over()


def test_a_read_from_the_disk_that_raises_ends_it_with_that_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk: Pending[ReadResult] = Pending()
    monkeypatch.setattr(Partition, "read", lambda *asked: disk)
    reading = Reading(world, _limits())
    reading.turns()
    assert (reading.done, reading.failures) == (0, [])
    disk.fail(RuntimeError("no error of a partition"))
    reading.turns()
    assert [str(each) for each in reading.failures] == ["no error of a partition"]
    assert (reading.done, reading.is_over()) == (0, True)


@pytest.mark.parametrize("turns", range(1, 10))
def test_what_arrives_behind_a_read_from_the_disk_is_not_missed(
    world: World, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    read, disks = Partition.read, []

    def slow(partition: Partition, *asked: object) -> object:
        found = read(partition, *asked)  # type: ignore[arg-type]
        if partition.index != 3 or disks:
            return found
        disk: Pending[object] = Pending()
        reading.loop.call_soon(lambda: disk.complete(found))
        disks.append(disk)
        return disk

    monkeypatch.setattr(Partition, "read", slow)
    reading = Reading(world, _limits())
    reading.turn(turns)
    _append(world, 2)
    reading.turns()
    assert (reading.done, reading.found(), len(disks)) == (1, [2], 1)
    assert reading.is_over()


def test_a_slice_ends_with_its_bytes_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(PARTITIONS):
        size_bytes = _append_bytes(world, index)
    monkeypatch.setattr(bounded_read, "SLICE_PARTITIONS", PARTITIONS)
    monkeypatch.setattr(bounded_read, "SLICE_BYTES", size_bytes + 1)
    reading = Reading(world, _limits(wait_ms=0))
    for read in (0, 2, 4, 6):
        assert reading.found() == list(range(read))
        reading.loop.turn()
    assert reading.done == 1
