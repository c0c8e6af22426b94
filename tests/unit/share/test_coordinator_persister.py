"""The broker's persister among coordinators that move, refuse and do not answer."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share import messages
from kwire.share.backoff import ATTEMPTS_MAX
from kwire.share.coordinator_persister import CoordinatorPersister
from kwire.share.keys import SharePartitionKey
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    StateBatch,
    WritePartition,
)
from tests.support.coordinators import ManualLoop
from tests.support.persister import MemoryPersister

TOPIC = b"t" * 16
METHODS = {
    "InitializeShareGroupStateRequest": ("initialize", "initialize"),
    "ReadShareGroupStateRequest": ("read", "read"),
    "WriteShareGroupStateRequest": ("write", "write"),
    "DeleteShareGroupStateRequest": ("delete", "delete"),
    "ReadShareGroupStateSummaryRequest": ("summary", "read_summary"),
}


class World:
    """Node 1 is this broker; `leaders` says who coordinates a partition, node 2 but for those."""

    node_id = 1

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.nodes = {1: MemoryPersister(), 2: MemoryPersister(), 3: MemoryPersister()}
        self.leaders: dict[int, int | None] = {}
        self.requests: list[tuple[int, Any]] = []
        self.failures: list[KafkaError] = []
        self.persister = CoordinatorPersister(
            loop=self.loop, coordinators=self, send=self.send, draw=lambda: 0.5
        )

    @property
    def local(self) -> MemoryPersister:
        return self.nodes[1]

    def find(self, key: SharePartitionKey) -> int | None:
        return self.leaders.get(key.partition, 2)

    def send(self, node_id: int, request: Any) -> Pending[Any]:
        """Over the wire of the newest version."""
        self.requests.append((node_id, request))
        if self.failures:
            return Pending.failed(self.failures.pop(0))
        version = type(request).MAX_VERSION
        request = type(request).decode(request.encode(version), version)
        name, method = METHODS[type(request).__name__]
        asked = getattr(messages, f"{name}_asked")(request)
        found = getattr(self.nodes[node_id], method)(request.group_id, asked)
        response = getattr(messages, f"{name}_response")
        return after(found, lambda done: response(done.result()))

    def initialized(self, node_id: int, *partitions: int) -> None:
        asked = [InitializePartition(TOPIC, partition, 0, 0) for partition in partitions]
        self.nodes[node_id].initialize("g", asked)


def change(partition: int, first: int = 0) -> WritePartition:
    return WritePartition(TOPIC, partition, 0, 0, 0, 0, [StateBatch(first, first, 2, 1)])


def test_a_call_is_split_by_coordinator_and_answered_in_its_order() -> None:
    world = World()
    world.leaders = {1: 1, 2: 3}
    every = range(5)
    asked = [InitializePartition(TOPIC, partition, partition, 7) for partition in every]
    done = world.persister.initialize("g", asked)
    assert done.result() == [PartitionResult(TOPIC, partition) for partition in every]
    assert [node_id for node_id, _ in world.requests] == [2, 3]
    assert world.nodes[1].calls == [("initialize", "g", [asked[1]])]
    epochs = [PartitionEpoch(TOPIC, partition, 4) for partition in every]
    assert [x.state_epoch for x in world.persister.read("g", epochs).result()] == list(every)
    assert [x.leader_epoch for x in world.persister.read_summary("g", epochs).result()] == [4] * 5
    ids = [PartitionId(TOPIC, partition) for partition in every]
    assert all(not x.error_code for x in world.persister.delete("g", ids).result())
    assert all(not node.states for node in world.nodes.values())


def test_what_is_asked_meanwhile_goes_out_in_one_request() -> None:
    world = World()
    world.initialized(2, *range(4))
    world.nodes[2].holding = True
    first = world.persister.write("g", [change(0)])
    others = [world.persister.write("g", [change(partition)]) for partition in (1, 2, 3)]
    again = world.persister.write("g", [change(1, 5)])  # the same partition: not in one request
    other_group = world.persister.write("h", [change(0)])
    assert len(world.requests) == 2
    world.nodes[2].release(1)
    assert first.done
    assert not others[0].done
    assert len(world.requests[2][1].topics[0].partitions) == 3
    world.nodes[2].holding = False
    world.nodes[2].release()
    for pending in (*others, again):
        assert not pending.result()[0].error_code
    assert other_group.result()[0].error_code == ErrorCode.INVALID_REQUEST
    assert sorted(world.nodes[2].states["g", TOPIC, 1].records) == [0, 5]


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    + [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
)  # fmt: skip
def test_what_passes_is_asked_again_after_pauses_that_double(code: ErrorCode) -> None:
    world = World()
    world.initialized(2, 0)
    world.nodes[2].errors["g", TOPIC, 0] = [code] * (ATTEMPTS_MAX - 1)
    pending = world.persister.write("g", [change(0)])
    sent_at_ms = [world.loop.now_ms]
    for _ in range(40):
        count = len(world.requests)
        world.loop.advance(1000)
        sent_at_ms += [world.loop.now_ms] * (len(world.requests) - count)
    pauses = [after - before for before, after in itertools.pairwise(sent_at_ms)]
    assert pauses == [2000, 4000, 8000, 16000]
    assert not pending.result()[0].error_code


def test_the_last_attempt_tells_what_was_wrong() -> None:
    world = World()
    world.nodes[2].errors["g", TOPIC, 0] = [ErrorCode.NOT_COORDINATOR] * ATTEMPTS_MAX
    pending = world.persister.write("g", [change(0)])
    world.loop.advance(100_000)
    assert len(world.requests) == ATTEMPTS_MAX
    assert pending.result()[0].error_code == ErrorCode.NOT_COORDINATOR


def test_a_fenced_write_is_not_tried_again() -> None:
    world = World()
    world.nodes[2].errors["g", TOPIC, 0] = [ErrorCode.FENCED_LEADER_EPOCH]
    pending = world.persister.write("g", [change(0)])
    assert pending.result()[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert len(world.requests) == 1


def test_an_answer_that_is_lost_is_asked_for_again() -> None:
    world = World()
    world.initialized(2, 0)
    world.failures = [
        KafkaError(ErrorCode.NETWORK_EXCEPTION),
        KafkaError(ErrorCode.REQUEST_TIMED_OUT),
    ]
    pending = world.persister.write("g", [change(0)])
    world.loop.advance(10_000)
    assert not pending.result()[0].error_code
    world.failures = [KafkaError(ErrorCode.UNSUPPORTED_VERSION)]
    refused = world.persister.write("g", [change(0)])
    assert refused.result()[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_coordinator_that_moves_is_followed_at_once() -> None:
    world = World()
    world.leaders = {0: None}
    world.initialized(3, 0)
    pending = world.persister.write("g", [change(0)])
    world.persister.coordinators_changed()
    assert not world.requests
    world.leaders = {0: 3}
    world.persister.coordinators_changed()
    assert not pending.result()[0].error_code
    world.nodes[3].errors["g", TOPIC, 0] = [ErrorCode.NOT_COORDINATOR]
    pending = world.persister.write("g", [change(0)])
    world.persister.coordinators_changed()  # the same one: it waits
    assert len(world.requests) == 2
    world.leaders = {0: 1}
    world.initialized(1, 0)
    world.persister.coordinators_changed()
    assert not pending.result()[0].error_code
    world.loop.advance(100_000)
    assert len(world.requests) == 2


def test_nobody_coordinates() -> None:
    world = World()
    world.leaders = {0: None}
    pending = world.persister.write("g", [change(0)])
    world.loop.advance(100_000)
    assert pending.result()[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_an_answer_without_the_partition_is_an_error() -> None:
    world = World()
    world.nodes[2].write = lambda group_id, partitions: Pending.completed([])  # type: ignore[method-assign]
    pending = world.persister.write("g", [change(0)])
    assert pending.result()[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_code_of_a_later_kafka_is_an_error_as_any() -> None:
    world = World()
    strange = PartitionResult(TOPIC, 0, 999, "new")
    world.nodes[2].write = lambda group_id, partitions: Pending.completed([strange])  # type: ignore[method-assign]
    result = world.persister.write("g", [change(0)]).result()[0]
    assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_closing_answers_all_that_is_open() -> None:
    world = World()
    world.leaders = {1: None, 3: 1}
    world.nodes[2].holding = world.nodes[1].holding = True
    calls = [world.persister.write("g", [change(x)]) for x in (0, 0, 1, 2, 3)]
    world.persister.close()
    for call in (*calls, world.persister.write("g", [change(0)])):
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            call.result()
    for node in world.nodes.values():
        node.release()
    world.loop.advance(100_000)
    assert len(world.requests) == 1


def test_a_call_that_is_given_up_is_not_sent_any_more() -> None:
    world = World()
    world.nodes[2].holding = True
    world.persister.write("g", [change(0)])
    given_up = world.persister.write("g", [change(1)])
    assert given_up.cancel()
    world.nodes[2].release()
    assert len(world.requests) == 1


def test_writes_that_this_broker_coordinates_wait_for_no_other_share_partition() -> None:
    world = World()
    world.leaders = {0: 1, 1: 1}
    world.initialized(1, 0, 1)
    world.nodes[1].holding = True
    writes = [world.persister.write("g", [change(0)]), world.persister.write("g", [change(1)])]
    assert world.nodes[1].held == 2
    world.nodes[1].release()
    assert [write.result() for write in writes] == [[PartitionResult(TOPIC, x)] for x in (0, 1)]
    assert not world.requests


def test_a_write_of_this_broker_that_may_pass_is_tried_again_where_the_coordinator_is() -> None:
    world = World()
    world.leaders = {0: 1}
    world.initialized(1, 0)
    world.initialized(3, 0)
    world.nodes[1].errors["g", TOPIC, 0] = [ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
    moved = world.persister.write("g", [change(0, 3)])
    assert not moved.done
    world.leaders = {0: 3}
    world.persister.coordinators_changed()
    assert not moved.result()[0].error_code
    assert sorted(world.nodes[3].states["g", TOPIC, 0].records) == [3]
    world.leaders = {0: 1}
    world.nodes[1].errors["g", TOPIC, 0] = [ErrorCode.FENCED_STATE_EPOCH]
    fenced = world.persister.write("g", [change(0, 4)]).result()[0]
    assert fenced.error_code == ErrorCode.FENCED_STATE_EPOCH
    assert fenced.error_message == "Error in write state RPC. FENCED_STATE_EPOCH"
    world.nodes[1].write = lambda group_id, partitions: Pending.completed([])  # type: ignore[method-assign]
    nothing = world.persister.write("g", [change(0, 4)]).result()[0]
    assert nothing.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.nodes[1].write = lambda group_id, partitions: Pending.failed(error)  # type: ignore[method-assign]
    failed = world.persister.write("g", [change(0, 4)]).result()[0]
    assert failed.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
