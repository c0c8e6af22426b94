"""A read of many partitions holds the loop for some of them at a time, and misses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log.types import Isolation
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica import bounded_read, delayed_read
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import DelayedRead, ReadContext
from kwire.replica.reading import ReadLimits
from kwire.slices import Slices
from tests.support.connections import TurningLoop
from tests.support.replica_world import World
from tests.support.replicas import TOPIC_ID, Position, Timer

PARTITIONS = 6
SLICE = 2
FOLLOWER = 2


def _limits(replica_id: int = -1, wait_ms: int = 500) -> ReadLimits:
    isolation = Isolation.HIGH_WATERMARK if replica_id < 0 else Isolation.LOG_END
    return ReadLimits(1, 1 << 20, wait_ms, isolation, replica_id)


class Reading:
    """A read of all partitions from their ends, in slices."""

    def __init__(self, world: World, limits: ReadLimits) -> None:
        self.world = world
        self.loop = TurningLoop()
        self.done = 0
        self.targets = [
            ReadTarget(world.partition(index), Position(0)) for index in range(PARTITIONS)
        ]
        self.context = ReadContext(self, self._exists)
        slices = Slices(self.loop.call_soon)
        self.read = DelayedRead(self.context, self.targets, limits, self._done, slices)
        self.read.start()

    def _exists(self, topic: str, index: int) -> bool:
        return self.world.image.topics.partition(topic, index) is not None

    def _done(self) -> None:
        self.done += 1

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See Deadlines."""
        return Timer(callback)

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
