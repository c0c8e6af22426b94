"""`kwire.client` on three brokers: leaders that are killed under a producer and a group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster as Client
from kwire.client.consumer import Consumer
from kwire.client.offsets import EARLIEST
from kwire.client.producer import Outgoing, Producer
from kwire.client.settings import ConnectionSettings
from kwire.testing.cluster import Cluster

WAIT_S = 240.0
ROUND = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, settings={"min.insync.replicas": 2}) as cluster:
        cluster.start()
        yield cluster


def test_each_record_once_over_killed_leaders_and_a_group_that_reads_them_all(
    cluster: Cluster,
) -> None:
    async def test() -> None:
        settings = ConnectionSettings(cluster.bootstrap, retry_timeout_s=120.0)
        async with Client(settings) as client:
            await Admin(client).topics.create("t", partitions=3, replication=3)
            producer = Producer(client)
            sent: list[bytes] = []
            found: list[bytes] = []

            async def produce(count: int) -> None:
                for _ in range(count):
                    value = b"%d" % len(sent)
                    sent.append(value)
                    await producer.send("t", [Outgoing(value=value)])

            async def read(consumer: Consumer) -> None:
                while len(dict.fromkeys(found)) < len(sent):
                    found.extend(each.record.value or b"" for each in await consumer.poll())
                    await consumer.commit()

            async with Consumer(client, "g", ["t"], start=EARLIEST) as consumer:
                await produce(ROUND)
                await read(consumer)
                victim = cluster[await client.leader("t", 0)]
                victim.kill()
                await produce(ROUND)
                await read(consumer)
                await asyncio.to_thread(victim.restart)
                await produce(ROUND)
                await read(consumer)
            assert sorted(dict.fromkeys(found), key=int) == sent  # at least once
            ends = await Admin(client).offsets.of_topic("t")
            assert sum(ends.values()) == len(sent), "each record is kept once"

    asyncio.run(asyncio.wait_for(test(), WAIT_S))
