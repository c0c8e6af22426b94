"""Metadata of all topics of a large cluster: in slices, and what is kept of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import metadata
from kwire.clock import SeededRandom
from kwire.kraft.images.cluster import FENCE, UNFENCE
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.membership.lost_brokers import LostBrokers
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.server.described_topics import VIEWS_MAX, DescribedTopics
from kwire.server.sliced_response import SlicedResponse
from kwire.slices import Slices
from tests.support.parts import made_parts

BROKERS = (1, 2, 3)
TOPICS = 150


def topic_id(number: int) -> bytes:
    return b"t%015d" % number


class Cluster:
    """600 partitions, and a broker that answers."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.described = DescribedTopics()
        self.soon: list[Callable[[], None]] = []
        self.seen: Callable[[str], bool] = lambda _: True
        self.slices = Slices(self.soon.append)
        shape = m.RegisterBrokerRecord
        records: list[Any] = [m.FeatureLevelRecord(name="metadata.version", feature_level=33)]
        for broker_id in BROKERS:
            places = [
                shape.BrokerEndpoint(name=name, host="b", port=broker_id)
                for name in ("PLAINTEXT", "INSIDE")[: 1 if broker_id == 3 else 2]
            ]
            records.append(
                shape(
                    broker_id=broker_id, incarnation_id=b"i" * 16, fenced=False, end_points=places
                )
            )
        for number in range(TOPICS):
            records += self.topic(number)
        self.commit(*records)

    def topic(self, number: int) -> list[Any]:
        source = random.Random(number)
        records: list[Any] = [m.TopicRecord(name=f"t{number}", topic_id=topic_id(number))]
        for partition in range(4):
            replicas = source.sample(BROKERS, 2)
            records.append(
                m.PartitionRecord(
                    topic_id=topic_id(number),
                    partition_id=partition,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                )
            )
        return records

    def commit(self, *records: Any) -> None:
        delta = MetadataDelta()
        for record in records:
            self.image.replay(record, delta=delta)
        self.described.applied(delta)

    def change(self, broker_id: int, **fields: int) -> None:
        shape = m.BrokerRegistrationChangeRecord
        self.commit(shape(broker_id=broker_id, broker_epoch=0, **fields))

    def ask(self, version: int = 12, listener: str = "PLAINTEXT", **fields: Any) -> Any:
        parts = made_parts(
            image=self.image, cluster_id="c", random=SeededRandom(1), lost_brokers=LostBrokers(),
            described_topics=self.described, config={},
        )  # fmt: skip
        context: Any = SimpleNamespace(
            parts=parts, slices=self.slices, listener_name=listener, api_version=version, now_ms=0,
            authorize=lambda *_: True, may=lambda *_: True, allows=lambda *_: True,
            sees=lambda _, name: self.seen(name),
        )  # fmt: skip
        fields.setdefault("topics", None if version else [])
        return metadata.handle(
            context, m.MetadataRequest(allow_auto_topic_creation=False, **fields)
        )

    def turn(self) -> None:
        soon = self.soon[:]
        self.soon.clear()
        for callback in soon:
            callback()

    def sliced(self, *arguments: Any, **fields: Any) -> SlicedResponse:
        pending = self.ask(*arguments, **fields)
        assert isinstance(pending, Pending)
        while self.soon:
            self.turn()
        response = pending.result()
        assert isinstance(response, SlicedResponse)
        return response

    def at_once(self, *arguments: Any, **fields: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(metadata, "AT_ONCE_PARTITIONS_MAX", 10_000)
            return self.ask(*arguments, **fields)

    def check(self, *arguments: Any, **fields: Any) -> None:
        """Twice: what is kept is the same."""
        whole = self.at_once(*arguments, **fields)
        errors = Counter(
            entry.error_code for topic in whole.topics for entry in (topic, *topic.partitions)
        )
        for _ in range(2):
            response = self.sliced(*arguments, **fields)
            (encoded,) = response.encode_parts(response.version)
            assert encoded == whole.encode(response.version)
            assert response.errors == errors
            assert response.decoded().encode(response.version) == encoded


@pytest.mark.parametrize("version", range(14))
def test_slices_are_the_same_bytes_at_every_version(version: int) -> None:
    Cluster().check(version)


def test_a_large_cluster_takes_several_turns_and_a_known_one_few() -> None:
    cluster = Cluster()
    pending = cluster.ask()
    cluster.turn()
    assert not pending.done
    while cluster.soon:
        cluster.turn()
    assert pending.done
    again = cluster.ask()
    cluster.turn()
    assert again.done


def test_what_changes_is_told() -> None:
    cluster = Cluster()
    cluster.check()
    cluster.check(12, "INSIDE")  # which does not reach broker 3
    cluster.commit(
        m.PartitionChangeRecord(topic_id=topic_id(7), partition_id=1, leader=2, isr=[2]),
        m.RemoveTopicRecord(topic_id=topic_id(9)),
        *cluster.topic(TOPICS),
    )
    cluster.check()
    cluster.commit(*(each for each in cluster.topic(9)))
    cluster.check()
    cluster.change(2, fenced=FENCE)
    cluster.check()
    cluster.check(12, "INSIDE")
    cluster.change(2, fenced=UNFENCE)
    cluster.check()


def test_rights_decide_anew_in_each_answer() -> None:
    cluster = Cluster()
    cluster.check()
    cluster.seen = lambda name: name.endswith("1")
    cluster.check()
    assert len(cluster.sliced().decoded().topics) == 15
    cluster.seen = lambda _: True
    cluster.check()


def test_what_changes_while_it_is_described_is_not_kept() -> None:
    cluster = Cluster()
    pending = cluster.ask()
    cluster.turn()
    cluster.change(1, fenced=FENCE)
    cluster.commit(
        m.RemoveTopicRecord(topic_id=topic_id(TOPICS - 1)),
        m.PartitionChangeRecord(topic_id=topic_id(0), partition_id=0, leader=2, isr=[2]),
    )
    while cluster.soon:
        cluster.turn()
    named = {topic.name for topic in pending.result().decoded().topics}
    assert "t0" in named
    assert f"t{TOPICS - 1}" not in named
    cluster.check()


def test_views_are_few() -> None:
    described = DescribedTopics()
    first = described.view("A", 12)
    first[b"t"] = (b"", 1)
    for version in range(VIEWS_MAX):
        described.view("B", version)
    assert described.view("A", 12) == {}


def _named(names: list[str]) -> list[Any]:
    return [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(1, 14))
def test_many_topics_by_name_are_answered_as_at_once(version: int) -> None:
    cluster = Cluster()
    names = [topic.name for topic in cluster.image.topics]
    cluster.check(version, topics=_named([*names[::-1], "missing", "no/name", names[0]]))
    cluster.check(version)


@pytest.mark.parametrize("version", [12, 13])
def test_many_topics_by_id_are_answered_as_at_once(version: int) -> None:
    cluster = Cluster()
    ids = [topic.topic_id for topic in cluster.image.topics]
    ids[3:3] = [b"\x07" * 16]
    shape = m.MetadataRequest.MetadataRequestTopic
    cluster.check(version, topics=[shape(topic_id=topic_id, name=None) for topic_id in ids])


def test_a_topic_that_goes_between_the_slices_is_described_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "SLICE_COST", 1)
    cluster = Cluster()
    topics = list(cluster.image.topics)
    pending = cluster.ask(topics=_named([topic.name for topic in topics]))
    cluster.turn()
    last = topics[-1]
    cluster.commit(m.RemoveTopicRecord(topic_id=last.topic_id))
    while cluster.soon:
        cluster.turn()
    found = pending.result().decoded().topics[-1]
    assert (found.name, found.error_code, len(found.partitions)) == (last.name, 0, 4)
    assert last.topic_id not in cluster.described.view("PLAINTEXT", 12)
