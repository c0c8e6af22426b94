"""Requests that name many topics or partitions are answered in slices, and as fewer ones are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.api import describe_configs, list_offsets
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.server.sliced_response import SlicedResponse
from kwire.testing.cluster import NodeInThread
from tests.support.wire import WireClient, produce_values

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
    add = SlicedResponse.add

    def counted(response: SlicedResponse, elements: Any) -> None:
        counts.append(len(elements))
        add(response, elements)

    monkeypatch.setattr(SlicedResponse, "add", counted)
    return counts


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
