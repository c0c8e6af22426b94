"""A commit of many partitions is made in slices, and decided as one that is made at once: whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.api import offset_commit
from kwire.coordinator.group import made_offsets
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import NodeInThread, wait_for
from tests.support.wire import WireClient

PARTITIONS = 9
VERSION = 9


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeInThread]:
    with NodeInThread(tmp_path_factory.mktemp("commits") / "data") as thread:
        yield thread


@pytest.fixture
def client(node: NodeInThread) -> Iterator[WireClient]:
    with WireClient(node.bootstrap) as client:
        yield client


@pytest.fixture(params=[1, 4])
def slice_partitions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(made_offsets, "SLICE_PARTITIONS", request.param)
    return int(request.param)


@pytest.fixture
def topic(client: WireClient, request: pytest.FixtureRequest) -> str:
    """A topic whose name is that of a group, too, which has its coordinator here."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    client.create_topic(name, PARTITIONS)
    client.create_topic(f"{name}-2", 2)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[name])
    wait_for(lambda: not client.call(find, 4).coordinators[0].error_code, "a coordinator")
    wait_for(lambda: _offsets(client, name) is not None, "the group is loaded")
    return name


def _request(topic: str, offset: int, *, is_fine: bool = False) -> Any:
    """To all partitions of two topics, to one that there is not, to a topic that there is not, and
    with metadata that is too large."""
    shape = m.OffsetCommitRequest

    def asked(name: str, count: int) -> Any:
        return shape.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                shape.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                for index in range(count)
            ],
        )

    topics = [asked(topic, PARTITIONS), asked(f"{topic}-2", 2)]
    if not is_fine:
        topics[0].partitions[3].committed_metadata = "x" * 5000
        topics[1].partitions[1].partition_index = 7
        topics.append(asked("missing", 3))
    return shape(group_id=topic, generation_id_or_member_epoch=-1, topics=topics)


def _offsets(client: WireClient, group: str) -> dict[tuple[str, int], int] | None:
    """What is committed; None while the group is being loaded."""
    shape = m.OffsetFetchRequest
    asked = shape.OffsetFetchRequestGroup(group_id=group, topics=None)
    (found,) = client.call(shape(groups=[asked]), 9).groups
    if found.error_code:
        return None
    return {
        (each.name, partition.partition_index): partition.committed_offset
        for each in found.topics
        for partition in each.partitions
    }


def _all(topic: str, offset: int) -> dict[tuple[str, int], int]:
    places = [(topic, index) for index in range(PARTITIONS)]
    return dict.fromkeys([*places, (f"{topic}-2", 0), (f"{topic}-2", 1)], offset)


def test_the_answer_is_the_one_that_is_made_at_once(
    client: WireClient, monkeypatch: pytest.MonkeyPatch, slice_partitions: int, topic: str
) -> None:
    in_slices = client.call(_request(topic, 5), VERSION)
    stored = _offsets(client, topic)
    expected = _all(topic, 5)
    del expected[topic, 3], expected[f"{topic}-2", 1]
    assert stored == expected
    monkeypatch.setattr(made_offsets, "SLICE_PARTITIONS", 1000)
    assert client.call(_request(topic, 5), VERSION) == in_slices


@pytest.mark.parametrize("is_sliced", [True, False])
def test_a_topic_that_is_named_twice_is_answered_whole(
    client: WireClient, monkeypatch: pytest.MonkeyPatch, topic: str, is_sliced: bool
) -> None:
    """Beside a partition that was refused only the last of both was in the answer."""
    monkeypatch.setattr(made_offsets, "SLICE_PARTITIONS", 1 if is_sliced else 1000)
    request = _request(topic, 5)
    request.topics = [request.topics[0], _request(topic, 6).topics[0], request.topics[2]]
    request.topics[0].partitions = request.topics[0].partitions[:2]
    request.topics[1].partitions = request.topics[1].partitions[1:3]
    answer = client.call(request, VERSION)
    codes = [(t.name, x.partition_index, x.error_code) for t in answer.topics for x in t.partitions]
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes == [
        *(("missing", index, unknown) for index in range(3)),
        *((topic, index, 0) for index in (0, 1, 1, 2)),
    ]
    assert _offsets(client, topic) == {(topic, 0): 5, (topic, 1): 6, (topic, 2): 6}


def test_commits_of_a_connection_are_stored_in_their_order(
    client: WireClient, slice_partitions: int, topic: str
) -> None:
    requests = [(_request(topic, offset, is_fine=True), VERSION) for offset in range(4)]
    answers = client.pipeline(requests)
    assert all(not x.error_code for each in answers for t in each.topics for x in t.partitions)
    assert _offsets(client, topic) == _all(topic, 3)


def test_a_small_commit_behind_one_in_slices_is_stored_later(
    client: WireClient, slice_partitions: int, topic: str
) -> None:
    small = _request(topic, 8, is_fine=True)
    small.topics = small.topics[1:]
    small.topics[0].partitions = small.topics[0].partitions[:1]
    client.pipeline([(_request(topic, 7, is_fine=True), VERSION), (small, VERSION)])
    assert _offsets(client, topic) == {**_all(topic, 7), (f"{topic}-2", 0): 8}


def test_all_is_committed_of_a_client_that_has_gone(
    node: NodeInThread, client: WireClient, slice_partitions: int, topic: str
) -> None:
    with WireClient(node.bootstrap) as other:
        other.send(_request(topic, 6, is_fine=True), VERSION)
    wait_for(lambda: _offsets(client, topic) == _all(topic, 6), "all is committed")


def test_others_have_their_turn_between_the_slices(
    client: WireClient,
    monkeypatch: pytest.MonkeyPatch,
    node: NodeInThread,
    slice_partitions: int,
    topic: str,
) -> None:
    turns: list[int] = []
    make = made_offsets.make

    def counted(commit: Any, topics: Any) -> Any:
        node.loop.call_soon(turns.append, 0)
        turns.append(sum(len(topic.partitions) for topic in topics))
        return make(commit, topics)

    monkeypatch.setattr(made_offsets, "make", counted)
    client.call(_request(topic, 6, is_fine=True), VERSION)
    assert sum(turns) == PARTITIONS + 2
    assert max(turns) == slice_partitions
    assert turns[1::2] == [0] * (len(turns) // 2)


def test_offsets_of_a_topic_that_goes_between_the_slices_are_not_stored(
    node: NodeInThread,
    client: WireClient,
    monkeypatch: pytest.MonkeyPatch,
    slice_partitions: int,
    topic: str,
) -> None:
    """Nobody would forget them: that its topic is gone was told before they were stored."""
    steps = made_offsets.MadeOffsets.steps
    gone: list[bool] = []

    def slow(made: Any) -> Iterator[None]:
        for _ in steps(made):
            yield
        while not gone:
            yield

    monkeypatch.setattr(made_offsets.MadeOffsets, "steps", slow)
    client.send(_request(topic, 6, is_fine=True), VERSION)
    with WireClient(node.bootstrap) as other:
        delete = m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=f"{topic}-2")], timeout_ms=10_000
        )
        assert other.call(delete, 6).responses[0].error_code == 0
    gone.append(True)
    answer = client.receive()
    codes = {(t.name, x.partition_index): x.error_code for t in answer.topics for x in t.partitions}
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes == {place: unknown if place[0] == f"{topic}-2" else 0 for place in _all(topic, 0)}
    found = {place: offset for place, offset in _all(topic, 6).items() if place[0] == topic}
    assert _offsets(client, topic) == found


def test_a_commit_of_few_partitions_is_decided_at_once(
    client: WireClient, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    monkeypatch.setattr(offset_commit, "commit_in_slices", None)
    client.call(_request(topic, 6, is_fine=True), VERSION)
    assert _offsets(client, topic) == _all(topic, 6)


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_commits_many_offsets_together(
    client: WireClient, slice_partitions: int, topic: str, committed: bool
) -> None:
    client.call(m.FindCoordinatorRequest(key_type=1, coordinator_keys=[topic]), 4)
    init = m.InitProducerIdRequest(
        transactional_id=topic, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )

    def initialised() -> Any:
        answer = client.call(init, 4)
        return answer if answer.error_code == 0 else None

    producer = wait_for(initialised, "a producer id")
    owner = {
        "transactional_id": topic,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
    }
    shape = m.TxnOffsetCommitRequest
    request = shape(
        group_id=topic,
        **owner,
        topics=[
            shape.TxnOffsetCommitRequestTopic(
                name=each.name,
                partitions=[
                    shape.TxnOffsetCommitRequestPartition(
                        partition_index=x.partition_index, committed_offset=x.committed_offset
                    )
                    for x in each.partitions
                ],
            )
            for each in _request(topic, 6, is_fine=True).topics
        ],
    )
    answer = client.call(request, 5)
    assert all(not x.error_code for t in answer.topics for x in t.partitions)
    assert _offsets(client, topic) == {}
    ended = client.call(m.EndTxnRequest(committed=committed, **owner), 5)
    assert ended.error_code == 0
    expected = _all(topic, 6) if committed else {}
    wait_for(lambda: _offsets(client, topic) == expected, "the transaction is over")
