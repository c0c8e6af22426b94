"""Faults that Kafka's coordinators once had when their partitions moved."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.partition import ShardState
from kwire.coordinator.runtime import CoordinatorRuntime
from kwire.coordinator.shard_interface import CoordinatorRecord, Result
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog, PassiveShard


class Notes(PassiveShard):
    """A shard that remembers offsets."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def replay(self, key: Any, value: Any, *_: int) -> None:
        self.offsets[key.partition] = value.offset


class World:
    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.log = MemoryLog(lagging=True)
        self.runtime: CoordinatorRuntime[Notes] = CoordinatorRuntime(
            module="group-coordinator",
            new_shard=lambda partition: Notes(),
            partition_log=self.log,
            loop=self.loop,
            clock=ManualClock(self.loop),
        )
        self.log.listener = self.runtime.high_watermark_advanced

    def load(self, epoch: int) -> None:
        self.runtime.load(0, epoch)
        self.loop.run()

    def put(self, index: int, offset: int) -> Pending[Any]:
        key = m.OffsetCommitKey(group="g", topic="t", partition=index)
        record = CoordinatorRecord(key, m.OffsetCommitValue(offset=offset, metadata=""), 4)
        return self.runtime.write(0, lambda shard, moment: Result([record], "put"))

    @property
    def offsets(self) -> dict[int, int]:
        shard = self.runtime.shard(0)
        assert shard is not None
        return shard.offsets


def refusal(pending: Pending[Any]) -> ErrorCode:
    assert pending.done
    with pytest.raises(KafkaError) as caught:
        pending.result()
    return ErrorCode(caught.value.code)


@pytest.mark.parametrize("epoch", [None, 3])
def test_kafka_19274_a_coordinator_goes_with_its_partition(epoch: int | None) -> None:
    """A partition that is deleted gets no new epoch: told of the old one, or of none
    (KAFKA-16118), the coordinator stayed, and answered of what was no more."""
    world = World()
    world.load(3)
    world.put(1, 10)
    world.runtime.unload(0, epoch)
    assert world.runtime.state(0) is None
    assert refusal(world.put(2, 20)) == ErrorCode.NOT_COORDINATOR


def test_kafka_20115_writes_that_wait_do_not_keep_a_coordinator() -> None:
    """With a write under way the unloading failed, as its log was not the leader's any more."""
    world = World()
    world.load(1)
    waiting = world.put(1, 10)
    assert not waiting.done
    world.log.refuse_reads = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.log.refuse_appends = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.runtime.unload(0, 2)
    assert world.runtime.state(0) is None
    assert refusal(waiting) == ErrorCode.NOT_COORDINATOR


def test_kafka_2841_a_leadership_that_goes_and_comes_back_leaves_the_newest_state() -> None:
    """The unloading of the former leadership came after the loading of the new one."""
    world = World()
    world.load(1)
    world.put(1, 10)
    world.log.commit(0, 1)
    world.runtime.unload(0, 2)
    world.load(3)
    world.runtime.unload(0, 2)
    assert world.runtime.state(0) is ShardState.ACTIVE
    assert world.offsets == {1: 10}
    world.runtime.load(0, 1)
    assert world.offsets == {1: 10}


def test_kafka_16030_a_leadership_that_is_lost_while_loading_loads_nothing() -> None:
    """The half that had been read was taken for all of it: offsets were missing."""
    world = World()
    world.load(1)
    for index in range(3):
        world.put(index, index)
        world.log.commit(0, index + 1)
    world.runtime.unload(0, 2)
    world.log.read_later = []
    world.load(3)
    assert world.runtime.state(0) is ShardState.LOADING
    pending, _ = world.log.read_later.pop()
    pending.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    world.loop.run()
    assert world.runtime.shard(0) is None
    assert world.runtime.state(0) is not ShardState.ACTIVE
    world.log.read_later = None
    world.load(5)
    assert world.offsets == {0: 0, 1: 1, 2: 2}
