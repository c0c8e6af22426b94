"""What the checks read from brokers: an application that breaks each of them, with aiokafka."""

from __future__ import annotations

import asyncio

import pytest

from kwire.testing.simulation import (
    ExactlyOnce,
    KeyOrder,
    NothingDoubled,
    NothingLost,
    OffsetsForward,
    simulated_cluster,
    watch,
)

aiokafka = pytest.importorskip("aiokafka")


def test_every_check_finds_its_break_in_the_logs_of_brokers() -> None:
    order, doubled, lost = KeyOrder(), NothingDoubled(), NothingLost()
    once, kept, watched = ExactlyOnce(), OffsetsForward("g"), OffsetsForward("g")
    uncommitted = NothingLost()

    async def produce(cluster) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id="t"
        )
        async with producer:
            async with producer.transaction():
                for value in (b"1", b"2", b"3"):
                    await producer.send_and_wait("in", value, key=b"k")
                for value in (b"2", b"1", b"1"):
                    await producer.send_and_wait("out", value, key=b"k")
            await producer.begin_transaction()
            await producer.send_and_wait("out", b"3", key=b"k")
            await producer.abort_transaction()

    async def consume(cluster) -> None:
        partition = aiokafka.TopicPartition("in", 0)
        consumer = aiokafka.AIOKafkaConsumer(
            "in",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        watch(consumer, watched)
        async with consumer:
            for _ in range(3):
                await consumer.getone()
            await consumer.commit()
            await consumer.commit({partition: 1})

    async def run() -> None:
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            for topic in ("in", "out"):
                await cluster.create_topic(topic, 1)
            await cluster.process(produce, cluster).finished()
            await cluster.process(consume, cluster).finished()
            for value in (b"1", b"2", b"3"):
                order.sending(value, b"k")
                lost.sent(value, b"k")
                uncommitted.sent(value, b"k")
            for check in (order, doubled, lost):
                await check.read(cluster, "out")
            await uncommitted.read(cluster, "out", committed=False)
            with pytest.raises(AssertionError, match="ExactlyOnce"):
                await once.compare(cluster, "in", "out")
            await kept.read_commits(cluster)

    asyncio.run(run())
    assert order.problems() == ["key b'k': b'1' comes after b'2'"] * 2
    assert doubled.problems() == ["b'1' is there 2 times"]
    assert lost.problems() == ["b'3' was acknowledged and is lost"]
    assert uncommitted.problems() == []
    assert once.problems() == [
        "b'1' is there 2 times, expected 1",
        "b'3' is there 0 times, expected 1",
    ]
    back = ["group 'g': in-0 goes back from 3 to 1"]
    assert kept.problems() == watched.problems() == back
