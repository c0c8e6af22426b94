"""`kwire.client.transactional_producer`: records and offsets all together or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.errors import RequestFailed
from kwire.client.fetching import Fetcher
from kwire.client.offsets import Offsets, Position
from kwire.client.producer import Outgoing
from kwire.client.settings import ConnectionSettings
from kwire.client.transactional_producer import Fenced, RecordTooLarge, TransactionalProducer
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker
from tests.support.client_transactions import EXPLICIT, IMPLICIT, finalize, transactions

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options=SETTINGS) as running:
        yield running


async def read(cluster: Cluster, topic: str, committed_only: bool = True) -> list[bytes]:
    fetcher = Fetcher(cluster, committed_only=committed_only, wait_ms=0)
    end = (await Offsets(cluster).at([(topic, 0)], committed=True))[topic, 0]
    values: list[bytes] = []
    at = 0
    while at < end:
        found = (await fetcher.fetch({(topic, 0): at}))[topic, 0]
        values += [bytes(record.value or b"") for record in found.records]
        at = found.next_offset
    return values


def test_batches_are_halved_until_the_topic_takes_them(broker: Broker) -> None:
    async def scenario() -> None:
        async with Cluster(ConnectionSettings(broker.bootstrap)) as cluster:
            await Admin(cluster).topics.create(
                "halved", partitions=1, configs={"max.message.bytes": "1000"}
            )
            producer = TransactionalProducer(cluster, "halved")
            await producer.open()
            small = [Outgoing(value=b"%02d" % at + b"x" * 200) for at in range(20)]
            assert await producer.send_in_parts("halved", 0, small) == list(range(20))
            large = [*small[:3], Outgoing(value=b"x" * 1000), small[3]]
            with pytest.raises(RecordTooLarge) as caught:
                await producer.send_in_parts("halved", 0, large)
            assert (caught.value.code, caught.value.at) == (ErrorCode.MESSAGE_TOO_LARGE, 3)
            await producer.commit()
            values = [value[:2] for value in await read(cluster, "halved")]
            assert values == [b"%02d" % at for at in (*range(20), 0, 1, 2)]

    asyncio.run(scenario())


def test_a_transaction_is_there_all_or_not_at_all(broker: Broker) -> None:
    async def scenario() -> None:
        async with Cluster(ConnectionSettings(broker.bootstrap)) as cluster:
            await Admin(cluster).topics.create("all", partitions=1)
            producer = TransactionalProducer(cluster, "all")
            await producer.open()
            for turn in range(4):
                await producer.send("all", 0, [Outgoing(value=b"%d" % turn), Outgoing(value=b"x")])
                await producer.send("all", 0, [Outgoing(value=b"y")])
                position = Position(turn, f"at {turn}")
                await producer.commit_offsets("all-group", {("all", 0): position})
                if turn % 2:
                    await producer.abort()
                    await producer.open()
                else:
                    await producer.commit()
            assert await read(cluster, "all") == [b"0", b"x", b"y", b"2", b"x", b"y"]
            assert len(await read(cluster, "all", committed_only=False)) == 12
            positions = await Offsets(cluster).positions("all-group", stable=True)
            assert positions == {("all", 0): Position(2, "at 2")}
            await producer.abort()  # nothing is open

    asyncio.run(scenario())


def test_who_opens_ends_what_was_there_and_fences_it(broker: Broker) -> None:
    async def scenario() -> None:
        async with Cluster(ConnectionSettings(broker.bootstrap)) as cluster:
            await Admin(cluster).topics.create("fenced", partitions=1)
            first = TransactionalProducer(cluster, "fenced")
            await first.open()
            await first.send("fenced", 0, [Outgoing(value=b"of the first")])
            await first.commit_offsets("fenced-group", {("fenced", 0): Position(7)})
            second = TransactionalProducer(cluster, "fenced")
            await second.open()
            assert await Offsets(cluster).positions("fenced-group", stable=True) == {}
            for refused in (
                first.send("fenced", 0, [Outgoing(value=b"late")]),
                first.commit_offsets("fenced-group", {("fenced", 0): Position(8)}),
                first.commit(),
            ):
                with pytest.raises(Fenced, match="another producer has taken it over"):
                    await refused
            await second.send("fenced", 0, [Outgoing(value=b"of the second")])
            await second.commit()
            assert await read(cluster, "fenced") == [b"of the second"]

    asyncio.run(scenario())


def test_what_a_partition_refuses_is_an_error_and_the_transaction_can_be_undone(
    broker: Broker,
) -> None:
    async def scenario() -> None:
        async with Cluster(ConnectionSettings(broker.bootstrap)) as cluster:
            limited = {"max.message.bytes": "100"}
            await Admin(cluster).topics.create("limited", partitions=1, configs=limited)
            producer = TransactionalProducer(cluster, "limited")
            await producer.open()
            await producer.send("limited", 0, [Outgoing(value=b"small")])
            with pytest.raises(RequestFailed) as refused:
                await producer.send("limited", 0, [Outgoing(value=b"l" * 1000)])
            assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
            await producer.abort()
            await producer.open()
            await producer.send("limited", 0, [Outgoing(value=b"next")])
            await producer.commit()
            assert await read(cluster, "limited") == [b"next"]

    asyncio.run(scenario())


def test_the_requests_are_those_of_the_transaction_version_of_the_cluster() -> None:
    with Broker(options=SETTINGS) as own:
        epochs = asyncio.run(transactions(own.bootstrap, "second", IMPLICIT))
        assert epochs == list(range(epochs[0], epochs[0] + 5))
        finalize(own.bootstrap, 1)
        epochs = asyncio.run(transactions(own.bootstrap, "first", EXPLICIT))
        assert len(set(epochs)) == 1
