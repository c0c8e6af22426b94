"""AlterPartition on its way: accepted, refused, overtaken, lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.isr_changes import IsrChangeSender
from kwire.replica.partition import Partition
from kwire.replica.state import AlterIsr, Assigned, FollowerFetched, ReplicaState, Tick

TOPIC_ID = bytes(range(16))


class World:
    """A leader (1) with a follower (2) that is caught up and not in the ISR."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Pending[Any]]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.sender = IsrChangeSender(1, lambda: 70, self._ask, self._later)
        self.partition = Partition("t", TOPIC_ID, 0, ReplicaState(1))
        self.partition.on_effects = lambda partition, effects: [
            self.sender.submit(partition, effect) for effect in effects if type(effect) is AlterIsr
        ]
        self.assign(partition_epoch=5)
        self.fetch()

    def assign(self, partition_epoch: int, epoch: int = 3, isr: tuple[int, ...] = (1,)) -> None:
        self.partition.assign(Assigned(1, epoch, partition_epoch, (1, 2), isr, 0), 0)

    def fetch(self) -> None:
        self.partition.step(FollowerFetched(2, 71, 0, 0))

    def _ask(self, api_key: int, request: Any) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.asked.append((request, pending))
        return pending

    def _later(self, delay_ms: float, callback: Callable[[], None]) -> None:
        self.timers.append((delay_ms, callback))

    def turn(self) -> None:
        timers, self.timers = self.timers, []
        for _, callback in timers:
            callback()

    def answer(self, code: ErrorCode = ErrorCode.NONE, **fields: Any) -> None:
        shape = m.AlterPartitionResponse
        data = shape.PartitionData(partition_index=0, error_code=int(code), **fields)
        topic = shape.TopicData(topic_id=TOPIC_ID, partitions=[data])
        self.asked[-1][1].complete(shape(topics=[topic]))


@pytest.fixture
def world() -> World:
    world = World()
    world.turn()
    return world


def test_the_request_names_the_epochs_of_the_brokers(world: World) -> None:
    request = world.asked[0][0]
    data = request.topics[0].partitions[0]
    assert (request.broker_id, request.broker_epoch) == (1, 70)
    assert (data.leader_epoch, data.partition_epoch, data.leader_recovery_state) == (3, 5, 0)
    assert [(s.broker_id, s.broker_epoch) for s in data.new_isr_with_epochs] == [(1, 70), (2, 71)]


def test_an_accepted_change_holds_at_once(world: World) -> None:
    world.answer(isr=[1, 2], partition_epoch=6, leader_id=1, leader_epoch=3)
    state = world.partition.state
    assert (state.isr, state.partition_epoch, state.pending_isr) == ((1, 2), 6, None)


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_refused_change_is_given_up(world: World, code: ErrorCode) -> None:
    world.answer(code)
    assert world.partition.state.pending_isr is None
    world.fetch()
    world.turn()
    assert len(world.asked) == 2, "the next fetch asks again"


@pytest.mark.parametrize("code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NEW_LEADER_ELECTED])
def test_an_overtaken_change_counts_until_the_metadata_comes(world: World, code: ErrorCode) -> None:
    """The controller may have executed an earlier try: the larger ISR holds the mark back."""
    world.answer(code)
    world.turn()
    assert len(world.asked) == 1
    assert world.partition.state.maximal_isr == (1, 2)
    world.assign(partition_epoch=6)
    assert world.partition.state.maximal_isr == (1,)


def test_a_lost_request_is_sent_again_as_long_as_it_is_wanted(world: World) -> None:
    world.asked[-1][1].fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert world.partition.state.pending_isr == (1, 2)
    world.turn()
    assert len(world.asked) == 2
    world.asked[-1][1].complete(m.AlterPartitionResponse(error_code=int(ErrorCode.NOT_CONTROLLER)))
    world.assign(partition_epoch=1, epoch=4)
    world.turn()
    assert len(world.asked) == 2, "the partition is led at another epoch by now"


def test_an_answer_that_comes_too_late_changes_nothing(world: World) -> None:
    world.assign(partition_epoch=9)
    world.answer(isr=[1, 2], partition_epoch=6)
    assert world.partition.state.isr == (1,)


@pytest.mark.parametrize("is_told_first", [False, True])
def test_changes_are_counted_whichever_way_they_become_known(
    world: World, is_told_first: bool
) -> None:
    """Where the metadata came before the answer, the change was in no count."""
    for epoch, isr, counts in ((6, (1, 2), (0, 1)), (7, (1,), (1, 1))):
        if is_told_first:
            world.assign(partition_epoch=epoch, isr=isr)
        world.answer(isr=list(isr), partition_epoch=epoch, leader_id=1, leader_epoch=3)
        assert (world.sender.shrinks, world.sender.expands) == counts
        state = world.partition.state
        state.log_end_offset = state.high_watermark = 1
        world.partition.now_ms = lambda: 10**9
        world.partition.step(Tick())
        world.turn()


def test_nothing_more_is_asked_for_a_partition_that_is_gone(world: World) -> None:
    world.asked[-1][1].fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    world.partition.state.leader_id = -1
    world.turn()
    assert len(world.asked) == 1
