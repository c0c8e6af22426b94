"""What roads remember of a connection is bounded, and asked for in vain only so often (ADR 55)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api.plain import commits, produces
from kwire.api.plain.commits import SHAPES_MAX, PlainCommits
from kwire.api.plain.looks import ASKED_OF, IN_VAIN_MAX
from kwire.api.plain.produces import HEADS_MAX, PlainProduces
from kwire.coordinator.group.usual_commit import UsualCommit
from kwire.protocol import messages as m
from kwire.protocol.commit_frames import PARTITIONS_MAX
from kwire.protocol.frame import encode_request
from kwire.protocol.structs import Message
from kwire.server.described_topics import DescribedTopics
from kwire.server.request_counts import RequestCounts
from tests.support.parts import made_parts

KEPT_BYTES_MAX = 1 << 20


def body_of(version: int, request: Message, client_id: str = "client") -> memoryview:
    parts = encode_request(request.API_KEY, version, 7, client_id, request)
    return memoryview(b"".join(parts))[4:]


def kept_bytes(ask: Callable[[], object]) -> int:
    """What is kept of what `ask` does."""
    tracemalloc.start()
    try:
        ask()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


class Produces:
    """A road to partitions that take what they are sent, of topics that are not `absent`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked_at = 0
        self.takes = True
        self.bytes_stored = 0
        self.described = DescribedTopics()
        head_of = produces.head_of

        def counted(body: memoryview) -> object:
            self.looked_at += 1
            return head_of(body)

        monkeypatch.setattr(produces, "head_of", counted)
        parts = made_parts(
            described_topics=self.described,
            schema_checks=SimpleNamespace(topics=()),
            replicas=SimpleNamespace(partition=self._partition),
            clock=SimpleNamespace(wall_ms=lambda: 1),
        )
        self.road = PlainProduces(parts, RequestCounts(0), 7)

    def _partition(self, topic: str, index: int) -> Any:
        if topic.startswith("absent"):
            return None
        return SimpleNamespace(
            topic=topic, write_under_way=None, append_usual=lambda *_: self.takes or None
        )

    def ask(self, topic: str = "t", partitions: int = 1, client_id: str = "client") -> bool:
        """Whether an unanswered Produce takes the road."""
        shape = m.ProduceRequest
        data = [
            shape.PartitionProduceData(index=index, records=b"x" * 90)
            for index in range(partitions)
        ]
        request = shape(
            acks=0,
            timeout_ms=1000,
            topic_data=[shape.TopicProduceData(name=topic, partition_data=data)],
        )
        connection: Any = SimpleNamespace(turn_s=-1.0, bytes_stored=0, unreplied_writes=[])
        answer = self.road(connection, body_of(7, request, client_id))
        self.bytes_stored += connection.bytes_stored
        return answer is not None


class Commits:
    """A road to groups that take a commit or do not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes: bool) -> None:
        self.looked_at = 0
        shape_of = commits.shape_of

        def counted(body: memoryview) -> object:
            self.looked_at += 1
            return shape_of(body)

        monkeypatch.setattr(commits, "shape_of", counted)
        groups = SimpleNamespace(
            usual_commit=lambda request, version: UsualCommit(request, version, 0),
            takes_commit=lambda *_: "the shard" if takes else None,
            takes_in=lambda *_: True,
        )
        topic = SimpleNamespace(name="t", topic_id=b"t" * 16, partitions=range(PARTITIONS_MAX))
        topics = SimpleNamespace(by_name={"t": topic}, by_id={})
        parts = made_parts(
            described_topics=DescribedTopics(),
            coordinators=SimpleNamespace(groups=groups),
            image=SimpleNamespace(topics=topics),
            cluster_id="c",
        )
        self.road = PlainCommits(parts, RequestCounts(8), 8)

    def ask(self, group_id: str, partitions: int = PARTITIONS_MAX) -> bool:
        shape = m.OffsetCommitRequest
        topic = shape.OffsetCommitRequestTopic(
            name="t",
            partitions=[
                shape.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=5, committed_metadata=""
                )
                for index in range(partitions)
            ],
        )
        request = shape(group_id=group_id, member_id="m", topics=[topic])
        connection: Any = SimpleNamespace(turn_s=-1.0, take_place=lambda place: None)
        return self.road(connection, body_of(8, request)) is not None


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Produces:
    return Produces(monkeypatch)


def test_what_takes_the_road_is_counted_as_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Produces(monkeypatch)
    assert road.ask()
    assert road.ask()
    assert road.bytes_stored == 2 * 90
    road.takes = False
    assert not road.ask()
    assert road.bytes_stored == 2 * 90


def test_produces_that_are_never_usual_are_looked_at_now_and_then_only(road: Produces) -> None:
    """Each of them was decoded and encoded in front of the general way."""
    for _ in range(IN_VAIN_MAX + 3 * ASKED_OF):
        assert not road.ask(partitions=50)
    assert road.looked_at == IN_VAIN_MAX + 3


def test_produces_that_no_partition_takes_are_looked_at_now_and_then_only(road: Produces) -> None:
    road.takes = False
    for _ in range(IN_VAIN_MAX + 3 * ASKED_OF):
        assert not road.ask()
    assert road.looked_at == IN_VAIN_MAX + 3


def test_a_client_that_becomes_usual_comes_onto_the_road_and_stays_there(road: Produces) -> None:
    for _ in range(1000):
        road.ask(partitions=50)
    taken = [road.ask() for _ in range(2 * ASKED_OF)]
    assert taken.index(True) < ASKED_OF
    assert all(taken[taken.index(True) :])
    looked_at = road.looked_at
    assert [road.ask(f"other-{number}") for number in range(20)] == [True] * 20
    assert road.looked_at == looked_at + 20


def test_what_is_remembered_is_found_between_requests_that_are_not_usual(road: Produces) -> None:
    topics = [f"{'t' * number}" for number in range(1, 21)]
    assert all(road.ask(topic) for topic in topics)
    for _ in range(1000):
        road.ask(partitions=50)
    assert all(road.ask(topic) for topic in topics)


def test_heads_of_topics_that_are_not_there_are_not_remembered(road: Produces) -> None:
    """64 of them, with long client ids, were 11 MiB, and kept all others off the road."""
    for number in range(100):
        assert not road.ask(f"absent-{number}", client_id="c" * 900)
    assert kept_bytes(lambda: [road.ask(f"absent-{n}", client_id="c" * 900) for n in range(99)]) < (
        HEADS_MAX * 100
    )
    assert any(road.ask() for _ in range(ASKED_OF))


def test_heads_with_many_bytes_are_not_remembered(road: Produces) -> None:
    def ask() -> None:
        for number in range(HEADS_MAX):
            assert not road.ask(f"topic-{number}", client_id="c" * 30_000)

    assert kept_bytes(ask) < HEADS_MAX * 1000


def test_a_new_topic_comes_onto_a_road_that_is_full(road: Produces) -> None:
    for number in range(HEADS_MAX):
        assert road.ask(f"topic-{number}")
    assert road.ask("new")
    assert road.ask("new")
    looked_at = road.looked_at
    assert all(road.ask(f"topic-{number}") for number in range(1, HEADS_MAX))
    assert road.looked_at == looked_at, "the oldest alone is forgotten"


def test_more_topics_than_are_remembered_do_not_drive_out_each_other(road: Produces) -> None:
    """Round about each would be forgotten before its next request, and made anew for each."""
    rounds, topics = 10, HEADS_MAX + 16
    taken = sum(road.ask(f"topic-{n}") for _ in range(rounds) for n in range(topics))
    assert taken > rounds * topics // 2
    assert road.looked_at < 2 * topics


def test_heads_are_forgotten_when_topics_change(road: Produces) -> None:
    assert road.ask()
    assert road.ask()
    assert road.looked_at == 1
    road.described.changes += 1
    assert road.ask()
    assert road.looked_at == 2


def test_commits_that_are_refused_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 of 33 KB were 65 MiB: each of 64 keys has the group's name."""
    road = Commits(monkeypatch, takes=False)

    def ask() -> None:
        for number in range(SHAPES_MAX):
            assert not road.ask(f"{number}" + "g" * 32_000)
            assert not road.ask(f"group-{number}")

    assert kept_bytes(ask) < KEPT_BYTES_MAX


def test_commits_that_are_taken_are_remembered_up_to_their_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    road = Commits(monkeypatch, takes=True)

    def ask() -> None:
        for number in range(2 * SHAPES_MAX):
            assert not road.ask(f"{number}" + "g" * 3000), "its keys have 190 KB"
        for _ in range(ASKED_OF):
            road.ask("other", 1)
        for number in range(2 * SHAPES_MAX):
            road.ask(f"group-{number}", 1)

    assert kept_bytes(ask) < KEPT_BYTES_MAX
    assert road.ask("group-20", 1)


def test_commits_that_are_refused_are_looked_at_now_and_then_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    road = Commits(monkeypatch, takes=False)
    for _ in range(IN_VAIN_MAX + 3 * ASKED_OF):
        assert not road.ask("group")
    assert road.looked_at == IN_VAIN_MAX + 3
