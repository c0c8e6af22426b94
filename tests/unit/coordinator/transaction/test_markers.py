"""Markers on their way to the leaders: here, elsewhere, refused, lost, fenced, without a leader."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.transaction.markers import MarkerSender, MarkersToWrite
from kwire.coordinator.transaction.shard import Prepared
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.coordinators import ManualLoop

Partition = tuple[str, int]
A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
TWO = (("t", 7), ("u", 8))


class World:
    """The coordinator (broker 1); `leaders` says who leads what, 0 is nobody."""

    node_id = 1

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.leaders: dict[Partition, int] = {A0: 1, A1: 2, B0: 2}
        self.sent: list[tuple[int, Any, Pending[Any]]] = []
        self.written: list[tuple[Partition, Pending[int]]] = []
        self.completed: list[Prepared] = []
        self.fenced: list[Prepared] = []
        self.sender = MarkerSender(
            loop=self.loop,
            leaders=self,
            send=self._send,
            on_complete=self.completed.append,
            on_fenced=self.fenced.append,
            local=self,
        )

    def leader_of(self, topic: str, partition: int) -> int | None:
        return self.leaders[topic, partition] or None

    def exists(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self.leaders

    def write(self, markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        writes: list[list[Pending[int]]] = []
        for one in markers:
            writes.append([Pending() for _ in one.partitions])
            self.written += zip(one.partitions, writes[-1])
        return writes

    def _send(self, node_id: int, request: m.WriteTxnMarkersRequest) -> Pending[Any]:
        version = m.WriteTxnMarkersRequest.MAX_VERSION
        request = m.WriteTxnMarkersRequest.decode(request.encode(version), version)
        pending: Pending[Any] = Pending()
        self.sent.append((node_id, request, pending))
        return pending

    def start(self, *partitions: Partition, name: str = "t") -> Prepared:
        prepared = Prepared(name, 7, 3, True, partitions, 2)
        self.sender.start(prepared, coordinator_epoch=5)
        self.loop.run()
        return prepared

    def answer(self, *codes: tuple[Partition, ErrorCode]) -> None:
        """The newest request's only marker."""
        shape = m.WriteTxnMarkersResponse
        marker = shape.WritableTxnMarkerResult(
            producer_id=7,
            topics=[
                shape.WritableTxnMarkerTopicResult(
                    name=topic,
                    partitions=[
                        shape.WritableTxnMarkerPartitionResult(
                            partition_index=index, error_code=int(code)
                        )
                    ],
                )
                for (topic, index), code in codes
            ],
        )
        self.sent[-1][2].complete(shape(markers=[marker]))


@pytest.fixture
def world() -> World:
    return World()


def asked(request: Any) -> list[Partition]:
    return [
        (topic.name, index)
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def test_each_leader_is_told_once_and_the_end_comes_when_all_have_written(world: World) -> None:
    prepared = world.start(A0, A1, B0)
    assert [(node_id, asked(request)) for node_id, request, _ in world.sent] == [(2, [A1, B0])]
    marker = world.sent[0][1].markers[0]
    assert (marker.producer_id, marker.producer_epoch) == (7, 3)
    assert (marker.transaction_result, marker.coordinator_epoch) == (True, 5)
    assert [partition for partition, _ in world.written] == [A0], "without a request"
    world.written[0][1].complete(int(ErrorCode.NONE))
    assert world.completed == []
    world.answer((A1, ErrorCode.NONE), (B0, ErrorCode.NONE))
    assert world.completed == [prepared]
    world.loop.advance(10_000)
    assert len(world.sent) == 1


def test_only_what_was_refused_is_sent_again_and_to_the_new_leader(world: World) -> None:
    prepared = world.start(A1, B0)
    world.answer((A1, ErrorCode.NONE), (B0, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    world.leaders[B0] = 3
    world.loop.advance(10_000)
    assert [(node_id, asked(request)) for node_id, request, _ in world.sent[1:]] == [(3, [B0])]
    assert world.completed == []
    world.answer((B0, ErrorCode.NONE))
    assert world.completed == [prepared]


def test_a_marker_that_is_not_answered_is_not_sent_again_with_one_that_has_failed(
    world: World,
) -> None:
    """Of two that are written the second one ends the producer's next transaction, where that has
    begun between them: an aborted record was seen as committed."""
    world.leaders[B0] = 3
    prepared = world.start(A0, A1, B0)
    assert [(node_id, asked(request)) for node_id, request, _ in world.sent] == [
        (2, [A1]),
        (3, [B0]),
    ]
    slow = world.sent[0][2]
    for _ in range(3):
        world.answer((B0, ErrorCode.NOT_ENOUGH_REPLICAS))
        world.loop.advance(1000)
    assert [(node_id, asked(request)) for node_id, request, _ in world.sent[2:]] == [(3, [B0])] * 3
    assert [partition for partition, _ in world.written] == [A0]
    world.answer((B0, ErrorCode.NONE))
    world.written[0][1].complete(int(ErrorCode.NONE))
    assert world.completed == []
    slow.fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    world.loop.advance(1000)
    assert world.sent[-1][0] == 2
    world.answer((A1, ErrorCode.NONE))
    assert world.completed == [prepared]


def test_a_request_that_is_lost_is_sent_again(world: World) -> None:
    prepared = world.start(A1)
    for _ in range(3):
        world.sent[-1][2].fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
        sent = len(world.sent)
        world.loop.advance(1000)
        assert len(world.sent) == sent + 1
    world.answer((A1, ErrorCode.NONE))
    assert world.completed == [prepared]


def test_what_an_answer_does_not_mention_is_sent_again(world: World) -> None:
    """A request that fails as a whole is answered without a marker: the transaction hung."""
    prepared = world.start(A1, B0)
    world.sent[-1][2].complete(m.WriteTxnMarkersResponse())
    world.loop.advance(1000)
    assert asked(world.sent[-1][1]) == [A1, B0]
    world.answer((A1, ErrorCode.NONE))
    world.loop.advance(1000)
    assert asked(world.sent[-1][1]) == [B0]
    assert world.completed == []
    world.answer((B0, ErrorCode.NONE))
    assert world.completed == [prepared]


def test_answers_are_those_of_their_producers_in_whatever_order(world: World) -> None:
    """Apache Kafka answers a request's markers by producer, not in their order."""
    first, second = (Prepared(name, number, 3, True, (A1,), 2) for name, number in TWO)
    for prepared in (first, second):
        world.sender.start(prepared, coordinator_epoch=5)
    world.loop.run()
    shape = m.WriteTxnMarkersResponse
    codes = {8: ErrorCode.NONE, 7: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    markers = [
        shape.WritableTxnMarkerResult(
            producer_id=producer_id,
            topics=[
                shape.WritableTxnMarkerTopicResult(
                    name="a",
                    partitions=[
                        shape.WritableTxnMarkerPartitionResult(
                            partition_index=1, error_code=int(code)
                        )
                    ],
                )
            ],
        )
        for producer_id, code in codes.items()
    ]
    world.sent[-1][2].complete(shape(markers=markers))
    assert world.completed == [second]
    world.loop.advance(1000)
    assert [x.producer_id for x in world.sent[-1][1].markers] == [first.producer_id]


def test_a_partition_without_a_leader_is_waited_for_and_one_that_is_gone_is_not(
    world: World,
) -> None:
    world.leaders[A1] = 0
    del world.leaders[B0]
    prepared = world.start(A1, B0)
    world.loop.advance(1000)
    assert world.sent == []
    world.leaders[A1] = 2
    world.loop.advance(1000)
    assert [asked(request) for _, request, _ in world.sent] == [[A1]]
    world.answer((A1, ErrorCode.NONE))
    assert world.completed == [prepared]
    assert world.start(B0) in world.completed, "no marker is left to write"


@pytest.mark.parametrize(
    "code", [ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH]
)
def test_a_coordinator_that_was_replaced_says_no_more(world: World, code: ErrorCode) -> None:
    prepared = world.start(A0, A1, B0)
    world.answer((A1, code), (B0, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert world.fenced == [prepared]
    world.written[0][1].complete(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    world.loop.advance(10_000)
    assert (len(world.sent), len(world.written)) == (1, 1), "what others answer starts nothing"
    assert world.completed == []


def test_what_comes_too_late_counts_for_nobody(world: World) -> None:
    """The next transaction of the same id owes its own markers."""
    world.start(A0)
    late = world.written[-1][1]
    newer = world.start(A0)
    late.complete(int(ErrorCode.NONE))
    assert world.completed == []
    world.written[-1][1].complete(int(ErrorCode.NONE))
    assert world.completed == [newer]
    world.start(A1)
    world.sender.forget("t")
    world.answer((A1, ErrorCode.NONE))
    assert world.completed == [newer]
