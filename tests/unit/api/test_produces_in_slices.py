"""A Produce of many partitions is appended in slices, and as one that is appended at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.api import produce
from kwire.protocol import messages as m
from kwire.testing.cluster import NodeInThread, wait_for
from tests.support.wire import WireClient, batch_of, fetch_values

PARTITIONS = 9
VERSION = 9


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeInThread]:
    with NodeInThread(tmp_path_factory.mktemp("produces") / "data") as thread:
        yield thread


@pytest.fixture
def client(node: NodeInThread) -> Iterator[WireClient]:
    with WireClient(node.bootstrap) as client:
        yield client


@pytest.fixture(params=[1, 4])
def slice_partitions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(produce, "SLICE_PARTITIONS", request.param)
    return int(request.param)


@pytest.fixture
def topic(client: WireClient, request: pytest.FixtureRequest) -> str:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    client.create_topic(name, PARTITIONS)
    return name


def _request(topic: str, value: bytes, acks: int, **fields: Any) -> Any:
    """To all partitions, to one that there is not, and to a topic that there is not."""
    shape = m.ProduceRequest
    data = [
        shape.PartitionProduceData(index=index, records=batch_of([value]))
        for index in range(PARTITIONS + 1)
    ]
    topics = [shape.TopicProduceData(name=name, partition_data=data) for name in (topic, "missing")]
    if fields.get("is_fine"):
        topics = [shape.TopicProduceData(name=topic, partition_data=data[:-1])]
    return shape(acks=acks, timeout_ms=30_000, topic_data=topics)


def _all_have(client: WireClient, topic: str, values: list[bytes]) -> bool:
    return all(fetch_values(client, topic, index) == values for index in range(PARTITIONS))


@pytest.mark.parametrize("acks", [1, -1])
def test_the_answer_is_the_one_that_is_made_at_once(
    client: WireClient,
    monkeypatch: pytest.MonkeyPatch,
    slice_partitions: int,
    topic: str,
    acks: int,
) -> None:
    in_slices = client.call(_request(topic, b"first", acks), VERSION)
    monkeypatch.setattr(produce, "SLICE_PARTITIONS", 1000)
    at_once = client.call(_request(topic, b"second", acks), VERSION)
    for entry in in_slices.responses[0].partition_responses[:PARTITIONS]:
        assert (entry.error_code, entry.base_offset) == (0, 0)
        entry.base_offset = 1
    assert in_slices == at_once
    assert _all_have(client, topic, [b"first", b"second"])


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_requests_of_a_connection_are_appended_in_their_order(
    client: WireClient, slice_partitions: int, topic: str, acks: int
) -> None:
    values = [b"%d" % number for number in range(4)]
    client.pipeline([(_request(topic, value, acks, is_fine=True), VERSION) for value in values])
    assert _all_have(client, topic, values)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_all_is_appended_of_a_client_that_has_gone(
    node: NodeInThread, client: WireClient, slice_partitions: int, topic: str, acks: int
) -> None:
    with WireClient(node.bootstrap) as other:
        for value in (b"a", b"b"):
            other.send(_request(topic, value, acks, is_fine=True), VERSION)
    wait_for(lambda: _all_have(client, topic, [b"a", b"b"]), "both requests are appended")


def test_without_acks_a_failure_closes_the_connection(
    node: NodeInThread, client: WireClient, slice_partitions: int, topic: str
) -> None:
    with WireClient(node.bootstrap) as other:
        other.send(_request(topic, b"v", 0), VERSION)
        other.expect_closed()
    assert _all_have(client, topic, [b"v"])


def test_nothing_is_appended_of_a_request_behind_one_whose_failure_closes_the_connection(
    node: NodeInThread, client: WireClient, slice_partitions: int, topic: str
) -> None:
    """The first slice of it was."""
    with WireClient(node.bootstrap) as other:
        other.send(_request(topic, b"v", 0), VERSION)
        other.send(_request(topic, b"w", 0, is_fine=True), VERSION)
        other.expect_closed()
    assert _all_have(client, topic, [b"v"])


def test_others_have_their_turn_between_the_slices(
    client: WireClient,
    monkeypatch: pytest.MonkeyPatch,
    node: NodeInThread,
    slice_partitions: int,
    topic: str,
) -> None:
    turns: list[int] = []
    counted = produce._Append._partition

    def partition(append: Any, *arguments: Any) -> Any:
        if not turns or turns[-1] == 0:
            node.loop.call_soon(turns.append, 0)
            turns.append(0)
        turns[-1] += 1
        return counted(append, *arguments)

    monkeypatch.setattr(produce._Append, "_partition", partition)
    client.call(_request(topic, b"v", 1, is_fine=True), VERSION)
    found = [each for each in turns if each]
    assert sum(found) == PARTITIONS
    assert max(found) == slice_partitions
