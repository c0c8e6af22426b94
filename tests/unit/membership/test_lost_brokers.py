"""Metadata names a broker that has just died a moment longer, and leads nobody to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import metadata
from kwire.clock import SeededRandom
from kwire.kraft.images.cluster import ENTER_CONTROLLED_SHUTDOWN, FENCE, UNFENCE
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.membership.lost_brokers import NAMED_FOR_MS, LostBrokers
from kwire.protocol import messages as m
from tests.support.parts import made_parts

TOPIC_ID = b"t" * 16
VICTIM = 2


class _Broker:
    """What a broker with a clock of its own answers to Metadata."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.lost = LostBrokers()
        self.image = MetadataImage()
        records: list[Any] = [m.FeatureLevelRecord(name="metadata.version", feature_level=33)]
        shape = m.RegisterBrokerRecord
        for node_id in (1, 2, 3):
            end_point = shape.BrokerEndpoint(name="PLAINTEXT", host="b", port=node_id)
            records.append(
                shape(
                    broker_id=node_id,
                    incarnation_id=b"i" * 16,
                    fenced=False,
                    end_points=[end_point],
                )
            )
        records.append(m.TopicRecord(name="t", topic_id=TOPIC_ID))
        records.append(
            m.PartitionRecord(
                topic_id=TOPIC_ID, replicas=[1, 2, 3], isr=[1, 2, 3], leader=VICTIM, leader_epoch=0
            )
        )
        self.commit(*records)

    def commit(self, *records: Any) -> None:
        delta = MetadataDelta()
        for record in records:
            self.image.replay(record, delta=delta)
        self.lost.applied(delta, self.now_ms)

    def change(self, broker_id: int, **fields: int) -> None:
        shape = m.BrokerRegistrationChangeRecord
        self.commit(shape(broker_id=broker_id, broker_epoch=0, **fields))

    def answer(self, topics: tuple[str, ...] | None = ("t",)) -> Any:
        """To a request for these topics, None: for all."""
        parts = made_parts(
            image=self.image, cluster_id="c", random=SeededRandom(1), broker_id=1,
            lost_brokers=self.lost, config={"auto.create.topics.enable": False},
        )  # fmt: skip
        context: Any = SimpleNamespace(
            parts=parts, listener_name="PLAINTEXT", api_version=12, now_ms=self.now_ms,
            authorize=lambda *_: True,
            allows=lambda *_: True,
            sees=lambda *_: True,
        )  # fmt: skip
        shape = m.MetadataRequest.MetadataRequestTopic
        names = None if topics is None else [shape(name=name) for name in topics]
        return metadata.handle(context, m.MetadataRequest(topics=names))

    def named(self) -> list[int]:
        return [broker.node_id for broker in self.answer().brokers]


def _killed() -> _Broker:
    """The victim is fenced and its partition led by another, in one batch as it is in life."""
    broker = _Broker()
    broker.now_ms = 5_000
    broker.commit(
        m.PartitionChangeRecord(topic_id=TOPIC_ID, leader=1, isr=[1, 3]),
        m.BrokerRegistrationChangeRecord(broker_id=VICTIM, broker_epoch=0, fenced=FENCE),
    )
    return broker


def test_a_dead_broker_is_named_beside_the_new_leaders_for_a_moment() -> None:
    broker = _killed()
    answer = broker.answer()
    assert [one.node_id for one in answer.brokers] == [1, 2, 3]
    partition = answer.topics[0].partitions[0]
    assert (partition.leader_id, partition.offline_replicas) == (1, [VICTIM])
    assert answer.controller_id != VICTIM
    broker.now_ms += NAMED_FOR_MS - 1
    assert broker.named() == [1, 2, 3]
    broker.now_ms += 1
    assert broker.named() == [1, 3]


@pytest.mark.parametrize("topics", [None, ()])
def test_who_asks_which_brokers_there_are_is_told_what_is(topics: tuple[str, ...] | None) -> None:
    assert [one.node_id for one in _killed().answer(topics).brokers] == [1, 3]


def test_a_dead_broker_without_a_successor_is_no_leader_though_it_is_named() -> None:
    broker = _Broker()
    broker.change(VICTIM, fenced=FENCE)
    partition = broker.answer().topics[0].partitions[0]
    assert partition.leader_id == -1
    assert broker.named() == [1, 2, 3]


def test_a_broker_that_said_goodbye_is_not_named() -> None:
    broker = _Broker()
    broker.change(VICTIM, in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN)
    broker.change(VICTIM, fenced=FENCE)
    assert broker.named() == [1, 3]


def test_a_broker_that_is_unregistered_is_not_named() -> None:
    broker = _killed()
    broker.commit(m.UnregisterBrokerRecord(broker_id=VICTIM, broker_epoch=0))
    assert broker.named() == [1, 3]


def test_a_broker_that_comes_back_fenced_is_named_until_the_moment_is_over() -> None:
    broker = _killed()
    shape = m.RegisterBrokerRecord
    end_point = shape.BrokerEndpoint(name="PLAINTEXT", host="b", port=22)
    broker.commit(
        shape(broker_id=VICTIM, incarnation_id=b"j" * 16, fenced=True, end_points=[end_point])
    )
    assert [one.port for one in broker.answer().brokers] == [1, 22, 3]
    broker.now_ms += NAMED_FOR_MS
    assert broker.named() == [1, 3]
    broker.change(VICTIM, fenced=UNFENCE)
    assert broker.named() == [1, 2, 3]
