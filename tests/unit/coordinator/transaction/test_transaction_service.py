"""The coordinator around its shards: producer ids it asks for, completions that its log refuses."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.transaction.end import EndRequest
from kwire.coordinator.transaction.init_producer import InitRequest
from kwire.coordinator.transaction.markers import MarkersToWrite
from kwire.coordinator.transaction.metadata import EXHAUSTED_EPOCH
from kwire.coordinator.transaction.service import TransactionCoordinator
from kwire.coordinator.transaction.shard import TransactionSettings
from kwire.coordinator.transaction.states import TransactionState
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog

T0 = ("topic", 0)
SCAN_MS = 5000


class World:
    """A coordinator that leads every partition itself; `marker_code` is what each marker meets."""

    node_id = 1

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.log = MemoryLog()
        self.marker_code = ErrorCode.NONE
        self.markers: list[tuple[str, int]] = []
        self.allocated = 100
        self.coordinator = TransactionCoordinator(
            settings=TransactionSettings(abort_timed_out_interval_ms=SCAN_MS),
            transaction_version=lambda: 2,
            partition_count=lambda: 1,
            partition_log=self.log,
            leaders=self,
            send_markers=self.send,
            allocate_producer_id=self.allocate,
            loop=self.loop,
            clock=ManualClock(self.loop),
            local=self,
        )
        self.log.listener = self.coordinator.runtime.high_watermark_advanced
        self.coordinator.load(0, 1)
        self.loop.run()

    def leader_of(self, topic: str, partition: int) -> int | None:
        return self.node_id

    def exists(self, topic: str, partition: int) -> bool:
        return True

    def send(self, node_id: int, request: Any) -> Pending[Any]:
        raise AssertionError("there is no other broker")

    def allocate(self) -> Pending[int]:
        self.allocated += 1
        return Pending.completed(self.allocated)

    def write(self, markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        self.markers += [partition for one in markers for partition in one.partitions]
        code = int(self.marker_code)
        return [[Pending.completed(code) for _ in one.partitions] for one in markers]

    def done(self, pending: Pending[Any]) -> Any:
        self.loop.run()
        return pending.result()

    def begin(self) -> tuple[int, int]:
        pid, epoch = self.done(self.coordinator.init_producer_id(InitRequest("t", 60_000)))
        self.done(self.coordinator.add_partitions("t", pid, epoch, [T0], 2))
        return pid, epoch

    def state(self) -> TransactionState:
        shard = self.coordinator.runtime.shard(0)
        assert shard is not None
        return shard.transactions["t"].state


@pytest.fixture
def world() -> World:
    return World()


def test_an_end_takes_a_producer_id_only_where_the_epoch_is_used_up(world: World) -> None:
    pid, epoch = world.begin()
    assert (pid, epoch, world.allocated) == (101, 0, 101)
    answer = world.done(world.coordinator.end_transaction(EndRequest("t", pid, 0, True, True)))
    assert tuple(answer) == (101, 1)
    assert world.allocated == 101
    shard = world.coordinator.runtime.shard(0)
    assert shard is not None
    shard.transactions["t"] = shard.transactions["t"]._replace(producer_epoch=EXHAUSTED_EPOCH)
    world.done(world.coordinator.add_partitions("t", pid, EXHAUSTED_EPOCH, [T0], 2))
    request = EndRequest("t", pid, EXHAUSTED_EPOCH, True, True)
    assert tuple(world.done(world.coordinator.end_transaction(request))) == (102, 0)
    assert world.allocated == 102


def test_a_completion_that_the_log_refuses_is_tried_again_later(world: World) -> None:
    pid, epoch = world.begin()
    write = world.write

    def write_and_refuse(markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        world.log.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
        return write(markers)

    world.write = write_and_refuse  # type: ignore[method-assign]
    world.done(world.coordinator.end_transaction(EndRequest("t", pid, epoch, True, True)))
    assert world.coordinator.runtime.shard(0) is None, "it is loaded anew"
    world.write, world.log.refuse_appends = write, None  # type: ignore[method-assign]
    world.loop.advance(2 * SCAN_MS)
    assert world.state() == TransactionState.COMPLETE_COMMIT
    assert set(world.markers) == {T0}, "writing a marker again is harmless"


def test_markers_that_fence_this_coordinator_are_given_up_until_the_next_scan(
    world: World,
) -> None:
    pid, epoch = world.begin()
    world.marker_code = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.done(world.coordinator.end_transaction(EndRequest("t", pid, epoch, True, True)))
    assert (world.state(), world.markers) == (TransactionState.PREPARE_COMMIT, [T0])
    world.marker_code = ErrorCode.NONE
    world.loop.advance(2 * SCAN_MS)
    assert world.state() == TransactionState.COMPLETE_COMMIT
