"""CreateTopics and DeleteTopics of many topics: decided in slices, as fewer are at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.requests import topics as topics_module
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.controllers import ControllerBench

CREATE, DELETE = m.CreateTopicsRequest, m.DeleteTopicsRequest


def made(name: str, partitions: int = 7, **configs: str) -> Any:
    shape = CREATE.CreatableTopicConfig
    return CREATE.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=2,
        configs=[shape(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def mixed() -> list[Any]:
    """200 topics, and one of each kind that is refused in between; some collide with one that
    there is, some with each other, which Kafka lets pass."""
    topics = [made(f"t{number}") for number in range(200)]
    topics[0] = made("a.b")
    topics[199] = made("a_b")
    topics[198] = made("col.liding")
    topics[130] = made("assigned")
    topics[130].num_partitions = topics[130].replication_factor = -1
    topics[130].assignments = [
        CREATE.CreatableReplicaAssignment(partition_index=index, broker_ids=[1 + index, 3])
        for index in range(2)
    ]
    topics[20] = made("t197")  # twice
    topics[40] = made("old")
    topics[60] = made("wrong", retention_ms="x")
    topics[80] = made("without", partitions=0)
    topics[100] = made("__cluster_metadata")
    topics[120] = made("denied")
    topics[140] = made("configured", min_insync_replicas="2")
    topics[160] = made("in/valid")
    return topics


def bench() -> ControllerBench:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    for name in ("old", "col_liding"):
        assert bench.create(name, partitions=1, factor=1).error_code == 0
    return bench


def paying(partitions_max: int) -> Callable[[int], None]:
    """A quota of so many partitions."""
    left = partitions_max

    def pay(partitions: int) -> None:
        nonlocal left
        if partitions > left:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        left -= partitions

    return pay


def in_slices(bench: ControllerBench, request: Any, **fields: Any) -> tuple[list[int], Any]:
    """How many records each slice has, and the answer; the records are appended as they come."""
    slices: Any = bench.controller.slices(request, ControllerContext(**fields))
    assert slices is not None
    counts = []
    while True:
        try:
            records = next(slices)
        except StopIteration as end:
            return counts, end.value
        counts.append(len(records))
        topics = {record.topic_id for record, _ in records if isinstance(record, m.TopicRecord)}
        for record, _ in records:
            assert not isinstance(record, m.PartitionRecord) or record.topic_id in topics
        bench.append(records)


def authorize(operation: int, kind: int, name: str) -> bool:
    return kind == 2 and name != "denied"


@pytest.mark.parametrize("validate_only", [False, True])
def test_many_topics_are_created_as_few_are(validate_only: bool) -> None:
    request = CREATE(topics=mixed(), timeout_ms=1000, validate_only=validate_only)
    whole, sliced = bench(), bench()
    quota = 7 * 150
    records, expected = whole.controller.handle(
        request,
        ControllerContext(api_version=7, authorize=authorize, apply_partition_quota=paying(quota)),
        0,
    )
    counts, answer = in_slices(
        sliced, request, api_version=7, authorize=authorize, apply_partition_quota=paying(quota)
    )
    assert len(counts) > 10
    if validate_only:
        assert records == []
        assert set(counts) == {0}
    else:
        largest = 7 + 1 + 2
        assert max(counts) < topics_module.SLICE_RECORDS + largest
        assert sum(counts) == len(records)
        whole.append(records)
    assert answer == expected
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert codes["a.b"] == ErrorCode.NONE
    assert codes["col.liding"] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert {topic.error_code for topic in answer.topics} == {
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    assert list(sliced.image.topics.by_name) == list(whole.image.topics.by_name)
    assert sliced.image.topics == whole.image.topics
    assert sliced.controller.index.state() == whole.controller.index.state()


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("between", [3, 60])
def test_two_new_topics_of_a_request_may_collide_however_many_there_are(
    between: int, validate_only: bool
) -> None:
    names = ["x.y", *(f"t{number}" for number in range(between)), "x_y"]
    request = CREATE(
        topics=[made(name) for name in names], timeout_ms=1000, validate_only=validate_only
    )
    world = bench()
    if between == 3:
        _, answer = world.controller.handle(request, ControllerContext(api_version=7), 0)
    else:
        _, answer = in_slices(world, request, api_version=7)
    assert {topic.error_code for topic in answer.topics} == {0}


def test_a_topic_that_another_request_creates_meanwhile_exists() -> None:
    world = bench()
    request = CREATE(topics=[made(f"t{number}") for number in range(50)], timeout_ms=1000)
    slices: Any = world.controller.slices(request, ControllerContext(api_version=7))
    world.append(next(slices))
    assert world.create("t49", partitions=1, factor=1).error_code == 0
    while True:
        try:
            world.append(next(slices))
        except StopIteration as end:
            codes = [topic.error_code for topic in end.value.topics]
            break
    assert codes == [0] * 49 + [int(ErrorCode.TOPIC_ALREADY_EXISTS)]
    assert len(world.image.topics.by_name["t49"].partitions) == 1


def test_what_is_small_or_too_large_is_decided_at_once() -> None:
    world = bench()
    for topics in ([made("small")], [made("large", partitions=10_001)], []):
        request = CREATE(topics=topics, timeout_ms=1000)
        assert world.controller.slices(request, ControllerContext(api_version=7)) is None
    late = CREATE(topics=mixed(), timeout_ms=0)
    assert world.controller.slices(late, ControllerContext(api_version=7)) is None
    world.controller.deactivate()
    request = CREATE(topics=mixed(), timeout_ms=1000)
    assert world.controller.slices(request, ControllerContext(api_version=7)) is None


def _created(count: int) -> ControllerBench:
    world = bench()
    topics = [made(f"t{number}", partitions=5) for number in range(count)]
    world.call(CREATE(topics=topics, timeout_ms=1000))
    return world


def _named(world: ControllerBench, names: list[str]) -> Any:
    """Every other topic by its id."""
    by_name = world.image.topics.by_name
    topics = []
    for number, name in enumerate(names):
        if number % 2 and name in by_name:
            topics.append(DELETE.DeleteTopicState(name=None, topic_id=by_name[name].topic_id))
        else:
            topics.append(DELETE.DeleteTopicState(name=name))
    return DELETE(topics=topics, timeout_ms=1000)


def test_many_topics_are_deleted_as_few_are() -> None:
    whole, sliced = _created(190), _created(190)
    names = [f"t{number}" for number in range(190)] + ["t7", "unknown", "denied"]

    def asked(world: ControllerBench) -> Any:
        request, shape = _named(world, names), DELETE.DeleteTopicState
        ids = [world.image.topics.by_name[name].topic_id for name in ("t1", "t188", "t9")]
        request.topics += [
            shape(name="t1"),  # by its id, too
            shape(name=None, topic_id=ids[1]),  # by its name, too
            shape(name=None, topic_id=ids[2]),  # twice
            shape(name=None, topic_id=b"u" * 16),
            shape(name=None),
            shape(name="t3", topic_id=ids[0]),
        ]
        return request

    quota = 5 * 150
    records, expected = whole.controller.handle(
        asked(whole),
        ControllerContext(api_version=6, authorize=authorize, apply_partition_quota=paying(quota)),
        0,
    )
    counts, answer = in_slices(
        sliced,
        asked(sliced),
        api_version=6,
        authorize=authorize,
        apply_partition_quota=paying(quota),
    )
    assert sum(counts) == len(records)
    assert len(counts) > 3
    assert max(counts) <= topics_module.SLICE_DELETED
    assert answer == expected
    assert {each.error_code for each in answer.responses} == {
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    whole.append(records)
    assert sliced.image.topics == whole.image.topics
    assert sliced.controller.index.state() == whole.controller.index.state()
    assert {"old", "t1", "t188"} <= sliced.image.topics.by_name.keys()


def test_a_topic_that_another_request_deletes_meanwhile_is_unknown() -> None:
    world = _created(60)
    request = _named(world, [f"t{number}" for number in range(60)])
    slices: Any = world.controller.slices(request, ControllerContext(api_version=6))
    world.append(next(slices))
    gone = _named(world, ["t58", "x", "t59"])
    gone.topics[2].name, gone.topics[2].topic_id = "t59", bytes(16)
    world.call(gone)
    while True:
        try:
            world.append(next(slices))
        except StopIteration as end:
            codes = {each.name: each.error_code for each in end.value.responses}
            unknown = [each for each in end.value.responses if each.name is None]
            break
    assert codes.pop("t58") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in unknown] == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert codes.pop(None) == ErrorCode.UNKNOWN_TOPIC_ID
    assert set(codes.values()) == {0}


def test_an_error_of_all_of_a_request_is_its_answer() -> None:
    world = bench()
    topics = [made(f"t{number}", partitions=-1) for number in range(100)]

    def pay(partitions: int) -> None:
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    request = CREATE(topics=[*topics, made("more", partitions=50)], timeout_ms=1000)
    counts, answer = in_slices(world, request, api_version=7, apply_partition_quota=pay)
    assert counts == [0]
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert list(world.image.topics.by_name) == ["old", "col_liding"]
