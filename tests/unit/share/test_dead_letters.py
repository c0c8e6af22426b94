"""Dead letters: what they look like, who refuses them, and what is tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import build_batch, read_records
from kwire.share.backoff import ATTEMPTS_MAX
from kwire.share.dead_letter_queue import DeadLetterQueue, Originals
from kwire.share.dead_letters import (
    BATCH_OVERHEAD_BYTES,
    REJECTED,
    DeadLetters,
    DeadLetterTopic,
    made_records,
    size_of,
)
from tests.support.coordinators import ManualClock, ManualLoop

GROUP, NAME, ID = "workers", "dlq.work", b"d" * 16


def letters(first: int = 5, last: int = 7, partition: int = 3, group: str = GROUP) -> DeadLetters:
    return DeadLetters(group, "src", b"s" * 16, partition, first, last, 2, REJECTED)


class World:
    """The cluster and its settings; `written` is (node, partition, records) of each Produce."""

    topic_name_prefix = "dlq."
    creates_topics = False

    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.names = {GROUP: NAME, "others": NAME}
        self.copies = False
        self.topic: DeadLetterTopic | None = DeadLetterTopic(ID, (1, 2), True, 1 << 20)
        self.created: list[str] = []
        self.creation: Callable[[], int] = lambda: 0
        self.codes: list[int] = []
        self.failures: list[KafkaError] = []
        self.written: list[tuple[int, int, list[Any]]] = []
        self.held: list[Pending[Any]] | None = None
        self.originals: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.reads: list[int] = []
        self.round = 1000
        self.queue = DeadLetterQueue(
            settings=self,
            effects=self,
            loop=self.loop,
            clock=ManualClock(self.loop),
            draw=lambda: 0.5,
        )

    def topic_of(self, group_id: str) -> str:
        return self.names.get(group_id, "")

    def copies_records(self, group_id: str) -> bool:
        return self.copies

    def find(self, topic: str) -> DeadLetterTopic | None:
        return self.topic

    def create(self, topic: str) -> Pending[int]:
        self.created.append(topic)
        return Pending.completed(self.creation())

    def read(self, letters: DeadLetters, first_offset: int, bytes_max: int) -> Pending[Originals]:
        self.reads.append(first_offset)
        last = min(letters.last_offset, first_offset + self.round - 1)
        found = {x: y for x, y in self.originals.items() if first_offset <= x <= last}
        return Pending.completed(Originals(found, last))

    def produce(self, node_id: int, request: m.ProduceRequest) -> Pending[m.ProduceResponse]:
        version = m.ProduceRequest.MAX_VERSION
        request = m.ProduceRequest.decode(request.encode(version), version)
        if self.failures:
            return Pending.failed(self.failures.pop(0))
        shape = m.ProduceResponse
        topics = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                code = self.codes.pop(0) if self.codes else 0
                if not code:
                    assert isinstance(data.records, bytes | memoryview)
                    records = list(read_records(bytes(data.records)))
                    self.written.append((node_id, data.index, records))
                answers.append(shape.PartitionProduceResponse(index=data.index, error_code=code))
            topics.append(
                shape.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=answers)
            )
        response = shape(responses=topics)
        if self.held is None:
            return Pending.completed(response)
        held: Pending[Any] = Pending()
        self.held.append(held)
        return held

    def offsets(self) -> list[int]:
        """Of the originals, in the order in which they were written."""
        return [
            int(dict(record.headers)["__dlq.errors.offset"])
            for _, _, records in self.written
            for record in records
        ]


def test_headers_tell_where_a_record_came_from() -> None:
    world = World()
    assert world.queue.write(letters()).result() is None
    [(node_id, partition, records)] = world.written
    assert (node_id, partition) == (2, 1)  # partition 3 of a topic with two
    assert [(record.key, record.value) for record in records] == [(None, None)] * 3
    assert dict(records[1].headers) == {
        "__dlq.errors.topic": b"src",
        "__dlq.errors.partition": b"3",
        "__dlq.errors.offset": b"6",
        "__dlq.errors.group": b"workers",
        "__dlq.errors.delivery.count": b"2",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert not world.reads


def test_records_are_copied_round_by_round_where_the_group_says_so() -> None:
    world = World()
    world.copies = True
    world.originals = {5: (b"k5", b"v5"), 7: (None, b"v7"), 9: (b"k9", None)}
    world.round = 2
    assert world.queue.write(letters(5, 9)).result() is None
    assert world.reads == [5, 7, 9]
    found = [(x.key, x.value) for _, _, records in world.written for x in records]
    assert found == [(b"k5", b"v5"), (None, None), (None, b"v7"), (None, None), (b"k9", None)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda world: world.names.clear(), "has no errors.deadletterqueue.topic.name"),
        (lambda world: world.names.update(workers="__dlq"), "internal topic"),
        (lambda world: world.names.update(workers="other"), "does not begin with"),
        (
            lambda world: setattr(world, "topic", world.topic._replace(is_enabled=False)),
            "errors.deadletterqueue.group.enable=true",
        ),
        (lambda world: setattr(world, "topic", None), "auto.create.topics.enable=true"),
    ],
)
def test_a_topic_that_may_not_be_written_to(change: Any, message: str) -> None:
    world = World()
    change(world)
    error = world.queue.write(letters()).error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.INVALID_CONFIG
    assert message in str(error.message)
    assert not world.written


def test_a_missing_topic_is_created_where_the_cluster_allows_it() -> None:
    world = World()
    made, world.topic = world.topic, None
    world.creates_topics = True
    answers = [ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.TOPIC_ALREADY_EXISTS]
    world.creation = lambda: int(answers.pop(0)) if answers else 0
    done = world.queue.write(letters())
    world.loop.advance(6000)
    assert world.created == [NAME] * 3
    assert not done.done  # created, and not published here yet
    world.topic = made
    world.loop.advance(8000)
    assert done.result() is None
    assert world.offsets() == [5, 6, 7]


def test_a_topic_that_cannot_be_created() -> None:
    world = World()
    world.topic = None
    world.creates_topics = True
    world.creation = lambda: int(ErrorCode.POLICY_VIOLATION)
    error = world.queue.write(letters()).error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.POLICY_VIOLATION


def test_a_topic_with_more_replicas_than_brokers_now_is_created_later() -> None:
    """Found by the simulation: while a broker was down, what was rejected was archived without a
    dead letter, since its topic could not be made."""
    world = World()
    world.creates_topics = True
    known, world.topic = world.topic, None
    codes = [int(ErrorCode.INVALID_REPLICATION_FACTOR)]

    def create() -> int:
        if codes:
            return codes.pop()
        world.topic = known
        return 0

    world.creation = create
    done = world.queue.write(letters())
    assert not done.done
    world.loop.advance(3000)
    assert done.result() is None
    assert world.offsets() == [5, 6, 7]


def test_what_passes_is_tried_again() -> None:
    world = World()
    world.codes = [int(ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    world.failures = [KafkaError(ErrorCode.NETWORK_EXCEPTION)]
    done = world.queue.write(letters())
    world.loop.advance(6000)
    assert done.result() is None
    assert world.offsets() == [5, 6, 7]
    world.failures = [KafkaError(ErrorCode.REQUEST_TIMED_OUT)] * ATTEMPTS_MAX
    done = world.queue.write(letters())
    world.loop.advance(100_000)
    error = done.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_leader_that_has_not_heard_of_a_new_topic_is_asked_again(code: ErrorCode) -> None:
    """Found by the simulation: what was rejected just after the topic had been made was archived
    without a dead letter."""
    world = World()
    world.codes = [int(code)]
    done = world.queue.write(letters())
    world.loop.advance(3000)
    assert done.result() is None
    assert world.offsets() == [5, 6, 7]


def test_what_the_topic_refuses_is_given_up() -> None:
    world = World()
    for code, said in (
        (int(ErrorCode.MESSAGE_TOO_LARGE), ErrorCode.MESSAGE_TOO_LARGE),
        (999, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        world.codes = [code]
        error = world.queue.write(letters()).error()
        assert isinstance(error, KafkaError)
        assert error.code == said


def test_a_topic_that_changes_meanwhile_counts_from_the_next_attempt_on() -> None:
    world = World()
    world.held = []
    first, second = world.queue.write(letters(0, 0)), world.queue.write(letters(1, 1))
    world.names[GROUP] = "dlq.other"
    held, world.held = world.held, None
    held[0].complete(_taken(1))
    assert first.result() is None
    assert second.result() is None
    third = world.queue.write(letters(2, 2))
    world.names.clear()
    assert third.result() is None
    assert world.offsets() == [0, 1, 2]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    world = World()
    assert world.topic is not None
    world.topic = world.topic._replace(leaders=(None, None))
    done = world.queue.write(letters())
    world.topic = world.topic._replace(leaders=(3, 3))
    world.loop.advance(3000)
    assert done.result() is None
    assert [node_id for node_id, _, _ in world.written] == [3]


def test_groups_share_a_request_as_far_as_a_batch_holds_them() -> None:
    world = World()
    world.held = []
    first = world.queue.write(letters(0, 0))
    others = [world.queue.write(letters(x, x, group="others")) for x in range(1, 4)]
    assert world.offsets() == [0]
    assert world.topic is not None
    one = size_of(made_records(letters(1, 1, group="others"), 1, 1, {}, 0, 1 << 20)[0], 0)
    world.topic = world.topic._replace(max_message_bytes=BATCH_OVERHEAD_BYTES + 2 * one + 2)
    for pending in [first, *others]:
        assert not pending.done
    held, world.held = world.held, None
    held[0].complete(_taken(1))
    assert first.done
    assert sorted(world.offsets()) == [0, 1, 2, 3]
    assert all(pending.done for pending in others)


def _taken(index: int) -> m.ProduceResponse:
    shape = m.ProduceResponse
    partition = shape.PartitionProduceResponse(index=index)
    return shape(
        responses=[shape.TopicProduceResponse(topic_id=ID, partition_responses=[partition])]
    )


def test_a_batch_is_no_larger_than_the_topic_allows() -> None:
    world = World()
    assert world.topic is not None
    world.topic = world.topic._replace(max_message_bytes=2000)
    assert world.queue.write(letters(0, 99)).result() is None
    assert world.offsets() == list(range(100))
    for _, _, records in world.written:
        stripped = [record._replace(offset=i) for i, record in enumerate(records)]
        assert len(build_batch(stripped)) <= 2000


@pytest.mark.parametrize("count", [1, 3, 70, 300])
def test_sizes_are_those_of_batches(count: int) -> None:
    originals = {x: (b"k" * x, None if x % 2 else b"v" * 200) for x in range(count)}
    records = made_records(letters(0, count - 1), 0, count - 1, originals, 7, 1 << 20)
    sizes = sum(size_of(record, i) for i, record in enumerate(records))
    assert len(build_batch(records)) == BATCH_OVERHEAD_BYTES + sizes


def test_closing_fails_what_is_open() -> None:
    world = World()
    world.held = []
    waiting = [world.queue.write(letters(x, x)) for x in range(3)]
    world.queue.close()
    for pending in (*waiting, world.queue.write(letters())):
        error = pending.error()
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
