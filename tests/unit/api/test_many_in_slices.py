"""Requests that name many topics or partitions are answered in slices, and as fewer ones are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.api import describe_configs, describe_log_dirs, list_offsets, offset_fetch
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.server.sliced_response import SlicedElement, SlicedResponse
from kwire.testing.cluster import NodeInThread
from tests.support.wire import TIMEOUT_S, WireClient, produce_values

TOPICS = [f"t{number}" for number in range(25)]
PARTITIONS = 16
TOPIC_RESOURCE = 2


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    directory = tmp_path_factory.mktemp("many") / "data"
    with NodeInThread(directory) as thread, WireClient(thread.bootstrap) as client:
        for number, name in enumerate(TOPICS):
            client.create_topic(name, PARTITIONS, {"retention.ms": str(100_000 + number)})
            for partition in range(number % 4):
                produce_values(client, name, partition, [b"x"] * (number + 1))
        yield client


@pytest.fixture
def sliced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many elements each slice had."""
    counts: list[int] = []
    for kind in (SlicedResponse, SlicedElement):
        monkeypatch.setattr(kind, "add", _counted(kind.add, counts))
    return counts


def _counted(add: Callable[[Any, Any], None], counts: list[int]) -> Callable[[Any, Any], None]:
    def counted(response: Any, elements: Any) -> None:
        counts.append(len(elements))
        add(response, elements)

    return counted


def _offsets(client: WireClient, asked: list[tuple[str, list[int]]], version: int) -> list[Any]:
    shape = m.ListOffsetsRequest
    request = shape(
        replica_id=-1,
        topics=[
            shape.ListOffsetsTopic(
                name=name,
                partitions=[
                    shape.ListOffsetsPartition(partition_index=index, timestamp=-1 - index % 2)
                    for index in partitions
                ],
            )
            for name, partitions in asked
        ],
    )
    answered: list[Any] = client.call(request, version).topics
    return answered


@pytest.mark.parametrize("version", [2, 4])
def test_epochs_of_many_partitions(client: WireClient, sliced: list[int], version: int) -> None:
    shape = m.OffsetForLeaderEpochRequest

    def epochs(asked: list[tuple[str, int]]) -> list[Any]:
        partitions = [
            shape.OffsetForLeaderPartition(partition=index, leader_epoch=0)
            for index in range(PARTITIONS)
        ]
        topics = [
            shape.OffsetForLeaderTopic(topic=name, partitions=partitions[:count])
            for name, count in asked
        ]
        answered: list[Any] = client.call(shape(replica_id=-1, topics=topics), version).topics
        return answered

    asked = [(name, PARTITIONS) for name in [*TOPICS, "unknown"]]
    found = epochs(asked)
    assert len(found) == len(sliced) == len(asked)
    for topic, one in zip(found, asked, strict=True):
        assert [topic] == epochs([one])
    assert len(sliced) == len(found), "fewer are answered at once"


@pytest.mark.parametrize("version", [1, 7, 11])
def test_offsets_of_many_partitions(client: WireClient, sliced: list[int], version: int) -> None:
    every = list(range(PARTITIONS))
    asked = [(name, every) for name in TOPICS] + [("unknown", every), ("t3", [16])]
    found = _offsets(client, asked, version)
    assert len(found) == len(sliced) == len(TOPICS) + 1
    assert sum(len(topic.partitions) for topic in found) > list_offsets.SLICE_PARTITIONS
    for topic in found:
        indexes = [*every, 16] if topic.name == "t3" else every
        assert [topic] == _offsets(client, [(topic.name, indexes)], version)
    assert len(sliced) == len(found), "fewer are answered at once"


def test_a_partition_that_is_named_twice_among_many(client: WireClient) -> None:
    every = list(range(PARTITIONS))
    found = _offsets(client, [(name, every) for name in [*TOPICS, "t7"]], 7)
    codes = {topic.name: {each.error_code for each in topic.partitions} for topic in found}
    assert codes.pop("t7") == {int(ErrorCode.INVALID_REQUEST)}
    assert set(map(frozenset, codes.values())) == {frozenset({0})}


def _configs(client: WireClient, names: list[str], version: int, texts: bool) -> list[Any]:
    shape = m.DescribeConfigsRequest
    request = shape(
        resources=[
            shape.DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
            )
            for name in names
        ],
        include_synonyms=True,
        include_documentation=texts,
    )
    described: list[Any] = client.call(request, version).results
    return described


@pytest.mark.parametrize(("version", "texts"), [(1, False), (4, True)])
def test_configs_of_many_topics(
    client: WireClient,
    sliced: list[int],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    texts: bool,
) -> None:
    def refusal(context: Any, resource: Any) -> ErrorCode | None:
        hidden = resource.resource_name in ("t2", "t22")
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if hidden else None

    monkeypatch.setattr(describe_configs, "_refusal", refusal)
    names = [*TOPICS, "unknown"]
    found = _configs(client, names, version, texts)
    assert sliced == [9, 10, 5, 2]
    hidden = ["t2", "t22"]
    assert [each.resource_name for each in found] == [
        *(name for name in names if name not in hidden),
        *hidden,
    ]
    for each in found:
        assert [each] == _configs(client, [each.resource_name], version, texts)


GROUP = "g"


@pytest.fixture(scope="module")
def committed(client: WireClient) -> None:
    """Half of the partitions of each topic have an offset."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    wait_for(lambda: client.call(find, 4).coordinators[0].error_code == 0)
    shape = m.OffsetCommitRequest
    request = shape(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[
            shape.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    shape.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=1000 * number + index,
                        committed_metadata=f"{name}-{index}",
                    )
                    for index in range(0, PARTITIONS, 2)
                ],
            )
            for number, name in enumerate(TOPICS)
        ],
    )

    def codes() -> set[int]:
        answered = client.call(request, 8)
        return {each.error_code for topic in answered.topics for each in topic.partitions}

    wait_for(lambda: codes() == {0})


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline


def _fetched(client: WireClient, names: list[str] | None, version: int) -> list[Any]:
    shape = m.OffsetFetchRequest
    every = list(range(PARTITIONS))
    if version < 8:
        asked = None
        if names is not None:
            asked = [
                shape.OffsetFetchRequestTopic(name=name, partition_indexes=every) for name in names
            ]
        found: list[Any] = client.call(shape(group_id=GROUP, topics=asked), version).topics
        return found
    wanted = None
    if names is not None:
        ids = {name: client.topic_id(name) for name in names} if version >= 10 else {}
        wanted = [
            shape.OffsetFetchRequestTopics(
                name="" if ids else name,
                topic_id=ids.get(name, bytes(16)),
                partition_indexes=every,
            )
            for name in names
        ]
    groups = [shape.OffsetFetchRequestGroup(group_id=each, topics=wanted) for each in ("e", GROUP)]
    empty, found_group = client.call(shape(groups=groups), version).groups
    assert (empty.group_id, found_group.group_id) == ("e", GROUP)
    for topic in empty.topics:
        assert {each.committed_offset for each in topic.partitions} == {-1}
    topics: list[Any] = found_group.topics
    return topics


@pytest.mark.parametrize("version", [1, 7, 8, 10])
def test_offsets_that_a_group_has_committed(
    client: WireClient, committed: None, sliced: list[int], version: int
) -> None:
    found = _fetched(client, TOPICS, version)
    assert len(found) == len(TOPICS)
    assert sum(len(topic.partitions) for topic in found) > offset_fetch.SLICE_PARTITIONS
    assert sum(sliced) == len(found) * (1 if version < 8 else 2)
    for number, topic in enumerate(found):
        offsets = [each.committed_offset for each in topic.partitions]
        assert offsets == [
            -1 if index % 2 else 1000 * number + index for index in range(PARTITIONS)
        ]
        sliced.clear()
        assert [topic] == _fetched(client, [TOPICS[number]], version)
        assert sliced == [], "fewer are answered at once"


@pytest.mark.parametrize("version", [7, 8, 10])
def test_all_offsets_that_a_group_has_committed(
    client: WireClient,
    committed: None,
    sliced: list[int],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    at_once = _fetched(client, None, version)
    assert sliced == []
    monkeypatch.setattr(offset_fetch, "SLICE_PARTITIONS", 40)
    assert _fetched(client, None, version) == at_once
    assert sliced == [1] * len(TOPICS)
    if version < 10:
        assert [topic.name for topic in at_once] == TOPICS


@pytest.mark.parametrize("version", [1, 4, 5])
def test_log_directories_with_many_logs(
    client: WireClient,
    committed: None,
    sliced: list[int],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    request = m.DescribeLogDirsRequest(topics=None)
    found = client.call(request, version)
    (directory,) = found.results
    sizes = {
        (topic.name, each.partition_index): each.partition_size
        for topic in directory.topics
        for each in topic.partitions
    }
    assert sum(sliced) == len(directory.topics) == len(TOPICS) + 1  # the offsets' topic
    for number, name in enumerate(TOPICS):
        filled = [index for index in range(PARTITIONS) if sizes[name, index]]
        assert filled == list(range(number % 4))
    named = m.DescribeLogDirsRequest.DescribableLogDirTopic
    some = client.call(
        m.DescribeLogDirsRequest(topics=[named(topic="t3", partitions=[2, 99])]), version
    )
    ((topic,),) = (each.topics for each in some.results)
    assert [each.partition_index for each in topic.partitions] == [2]
    assert sum(sliced) == len(directory.topics), "few are described at once"
    monkeypatch.setattr(describe_log_dirs, "SLICE_LOGS", 10_000)
    sliced.clear()
    at_once = client.call(request, version)
    assert sliced == []
    at_once.results[0].usable_bytes = directory.usable_bytes
    assert at_once == found


@pytest.mark.parametrize("version", [2, 7])
def test_the_answer_about_many_new_topics(
    client: WireClient, sliced: list[int], version: int
) -> None:
    shape = m.CreateTopicsRequest
    topics = [
        shape.CreatableTopic(
            name=f"new{version}-{number}" if number != 7 else "t7",
            num_partitions=1 + number % 2,
            replication_factor=1,
        )
        for number in range(60)
    ]
    request = shape(topics=topics, timeout_ms=60_000)
    found = client.call(request, version).topics
    assert sliced == [30, 30]
    assert [topic.error_code for topic in found].count(0) == 59
    assert found[7].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert [topic.name for topic in found] == [topic.name for topic in topics]
    again = client.call(shape(topics=topics[:10], timeout_ms=60_000), version).topics
    assert {topic.error_code for topic in again} == {int(ErrorCode.TOPIC_ALREADY_EXISTS)}
    assert found[7] == again[7]
    if version >= 5:
        assert [topic.num_partitions for topic in found[:4]] == [1, 2, 1, 2]
        assert len(found[0].configs) == len(found[59].configs) > 30
