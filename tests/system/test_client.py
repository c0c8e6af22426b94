"""`kwire.client` against real brokers: records, groups, administration, failures."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import ANY, Cluster
from kwire.client.configs import Resource
from kwire.client.consumer import Consumed, Consumer, GroupProtocol
from kwire.client.errors import ClientError, RequestFailed, Unanswered, Unreachable, Unsupported
from kwire.client.fetching import Fetcher
from kwire.client.offsets import EARLIEST
from kwire.client.producer import Kept, Outgoing, Producer
from kwire.client.settings import ConnectionSettings
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec
from kwire.testing.cluster import Broker

T = TypeVar("T")

WAIT_S = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    often = {  # members hear of a change with their next heartbeat
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.heartbeat.interval.ms": "200",
        "group.initial.rebalance.delay.ms": "0",
    }
    with Broker(arguments=["--no-http"], options=often) as one:
        yield one


def run(broker: Broker, test: Callable[[Cluster], Awaitable[T]], **settings: float) -> T:
    async def inner() -> T:
        made = ConnectionSettings(broker.bootstrap, **settings)  # type: ignore[arg-type]
        async with Cluster(made) as cluster:
            return await asyncio.wait_for(test(cluster), WAIT_S)

    return asyncio.run(inner())


async def some(fetcher: Fetcher, name: tuple[str, int], offset: int) -> None:
    """Fetch until there is an answer: a new leader may not know that it is one."""
    while not await fetcher.fetch({name: offset}):
        pass


@pytest.mark.parametrize("codec", list(Codec))
def test_records_come_back_as_they_went(broker: Broker, codec: Codec) -> None:
    name = f"records-{codec.name.lower()}"

    async def test(cluster: Cluster) -> None:
        await Admin(cluster).topics.create(name, partitions=3)
        sent = [
            Outgoing(b"a key", b"a value", (("name", b"x"), ("none", None)), 1_700_000_000_000),
            Outgoing(None, b"anywhere"),
            Outgoing(b"null", None, partition=2),
        ]
        kept = await Producer(cluster, codec=codec).send(name, sent)
        assert [one.offset for one in kept if one.partition == 2][-1:] >= [0]
        assert kept[2].partition == 2
        found = await Fetcher(cluster).fetch({(name, index): 0 for index in range(3)})
        by_place = {
            Kept(index, record.offset): record
            for (_, index), fetched in found.items()
            for record in fetched.records
        }
        assert len(by_place) == 3
        first = by_place[kept[0]]
        assert (first.key, first.value, first.timestamp) == (
            b"a key",
            b"a value",
            1_700_000_000_000,
        )
        assert list(first.headers) == [("name", b"x"), ("none", None)]
        assert by_place[kept[2]].value is None

    run(broker, test)


@pytest.mark.parametrize("acks", [1, 0, -1])
def test_acks(broker: Broker, acks: int) -> None:
    name = f"acks{acks}"

    async def test(cluster: Cluster) -> None:
        await Admin(cluster).topics.create(name, partitions=1)
        producer = Producer(cluster, acks=acks)
        (kept,) = await producer.send(name, [Outgoing(value=b"x")])
        assert kept == Kept(0, -1 if acks == 0 else 0)
        found = await Fetcher(cluster, wait_ms=20_000).fetch({(name, 0): 0})
        assert [record.value for record in found[name, 0].records] == [b"x"]

    run(broker, test)


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        with pytest.raises(RequestFailed, match="topic nothing: not found") as caught:
            await Producer(cluster).send("nothing", [Outgoing(value=b"x")])
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await Admin(cluster).topics.create("few", partitions=1)
        with pytest.raises(ClientError, match="has no partition 7"):
            await cluster.leader("few", 7)
        fetcher = Fetcher(cluster)
        with pytest.raises(RequestFailed, match="few-0"):
            await some(fetcher, ("few", 0), 1000)

    run(broker, test)


def test_a_batch_that_is_refused_does_not_end_the_producer(broker: Broker) -> None:
    """Its sequence numbers are given up: the next batch has new ones."""

    async def test(cluster: Cluster) -> None:
        await Admin(cluster).topics.create(
            "small", partitions=1, configs={"max.message.bytes": "1000"}
        )
        producer = Producer(cluster)
        assert await producer.send("small", [Outgoing(value=b"1")]) == [Kept(0, 0)]
        with pytest.raises(RequestFailed) as caught:
            await producer.send("small", [Outgoing(value=bytes(2000))])
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert await producer.send("small", [Outgoing(value=b"2")]) == [Kept(0, 1)]

    run(broker, test)


def test_many_at_once_keep_their_order(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        await Admin(cluster).topics.create("many", partitions=2)
        producer = Producer(cluster)
        await asyncio.gather(
            *(
                producer.send("many", [Outgoing(value=b"%d" % number, partition=number % 2)])
                for number in range(50)
            )
        )
        found = await Fetcher(cluster).fetch({("many", 0): 0, ("many", 1): 0})
        for index in (0, 1):
            values = [record.value for record in found["many", index].records]
            assert values == [b"%d" % number for number in range(index, 50, 2)]

    run(broker, test)


async def read(consumer: Consumer, count: int) -> list[Consumed]:
    found: list[Consumed] = []
    while len(found) < count:
        found += await consumer.poll()
    return found


def test_a_group_reads_everything_once_over_its_members(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        admin = Admin(cluster)
        await admin.topics.create("shared", partitions=4)
        producer = Producer(cluster)
        for number in range(40):
            await producer.send("shared", [Outgoing(value=b"%d" % number, partition=number % 4)])
        async with Consumer(cluster, "g", ["shared"], start=EARLIEST) as first:
            found = await read(first, 40)
            await first.commit()
            async with Consumer(cluster, "g", ["shared"], start=EARLIEST) as second:
                while not (len(first.assigned) == len(second.assigned) == 2):
                    assert await first.poll() == []
                    assert await second.poll() == []
                described = await admin.groups.describe_consumer("g")
                assert len(described.members) == 2
                for number in range(40, 48):
                    await producer.send(
                        "shared", [Outgoing(value=b"%d" % number, partition=number % 4)]
                    )
                found += await read(first, 4)
                found += await read(second, 4)
                await first.commit()
                await second.commit()
        values = [each.record.value or b"" for each in found]
        assert sorted(map(int, values)) == list(range(48))
        lag = await admin.offsets.lag("g")
        assert {name: one.records for name, one in lag.items()} == {
            ("shared", index): 0 for index in range(4)
        }
        assert "g" in [group.group_id for group in await admin.groups.listed()]
        await admin.groups.delete("g")
        with pytest.raises(RequestFailed):
            await admin.groups.delete("g")

    run(broker, test)


def test_a_classic_group_with_a_member_of_librdkafka(broker: Broker) -> None:
    """Whoever leads assigns to the other; what one had committed the other does not read again."""
    confluent_kafka = pytest.importorskip("confluent_kafka")

    async def test(cluster: Cluster) -> None:
        admin = Admin(cluster)
        await admin.topics.create("classic", partitions=4)
        producer = Producer(cluster)

        async def send(begin: int, end: int) -> None:
            for number in range(begin, end):
                one = Outgoing(value=b"%d" % number, partition=number % 4)
                await producer.send("classic", [one])

        await send(0, 8)
        classic = GroupProtocol.CLASSIC
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "old",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6000,
        }
        async with (
            Cluster(ConnectionSettings(broker.bootstrap)) as own,
            Consumer(own, "old", ["classic"], start=EARLIEST, protocol=classic) as ours,
        ):
            found = [int(each.record.value or b"") for each in await read(ours, 8)]
            await ours.commit()
            theirs = confluent_kafka.Consumer(settings)
            theirs.subscribe(["classic"])
            while not (len(ours.assigned) == len(theirs.assignment()) == 2):
                assert await ours.poll() == []
                assert await asyncio.to_thread(theirs.poll, 0.1) is None
            described = await admin.groups.describe_classic("old")
            assert (described.group_state, len(described.members)) == ("Stable", 2)
            await send(8, 16)
            found += [int(each.record.value or b"") for each in await read(ours, 4)]
            for _ in range(4):
                while (message := await asyncio.to_thread(theirs.poll, 0.1)) is None:
                    pass
                found.append(int(message.value()))
            await asyncio.to_thread(theirs.close)
            while len(ours.assigned) < 4:
                found += [int(each.record.value or b"") for each in await ours.poll()]
        assert set(found) == set(range(16))
        assert (await admin.groups.describe_classic("old")).group_state == "Empty"

    run(broker, test)


def test_offsets_of_a_group_without_members(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        admin = Admin(cluster)
        await admin.topics.create("o", partitions=2)
        await Producer(cluster).send("o", [Outgoing(value=b"x", partition=0)] * 5)
        await admin.offsets.commit("lonely", {("o", 0): 2, ("o", 1): 0})
        assert await admin.offsets.committed("lonely") == {("o", 0): 2, ("o", 1): 0}
        lag = await admin.offsets.lag("lonely")
        assert (lag["o", 0].records, lag["o", 1].records) == (3, 0)
        await admin.offsets.delete("lonely", [("o", 1)])
        assert await admin.offsets.committed("lonely") == {("o", 0): 2}
        await admin.topics.delete("o")
        assert await admin.offsets.lag("lonely") == {}

    run(broker, test)


def test_administration(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        admin = Admin(cluster)
        await admin.topics.create("a", partitions=1, configs={"retention.ms": "1000"})
        with pytest.raises(RequestFailed, match="topic a: "):
            await admin.topics.create("a")
        await admin.topics.add_partitions("a", 3)
        assert len((await cluster.topic("a")).partitions) == 3
        await admin.configs.alter(Resource.TOPIC, "a", {"retention.ms": None, "flush.ms": "7"})
        told = {each.name: each.value for each in await admin.configs.describe(Resource.TOPIC, "a")}
        assert (told["flush.ms"], told["retention.ms"]) == ("7", "604800000")
        with pytest.raises(RequestFailed):
            await admin.configs.alter(Resource.TOPIC, "a", {"flush.ms": "x"})
        assert await admin.configs.describe(Resource.BROKER, "1", ["num.io.threads"])
        assert await admin.transactions.listed() == []
        assert await admin.transactions.writers("a", 0) == []
        await admin.topics.delete("a")
        assert "a" not in [topic.name for topic in await admin.topics.listed()]
        with pytest.raises(RequestFailed, match="ACLs: "):
            await admin.acls.listed()

    run(broker, test)


def test_a_broker_that_is_started_again_is_found_again() -> None:
    with Broker(arguments=["--no-http"], data_dir=None) as first:

        async def test(cluster: Cluster) -> None:
            await Admin(cluster).topics.create("t", partitions=1)
            await cluster.metadata(None)
            await asyncio.to_thread(first.restart)
            assert (await cluster.metadata(None)).brokers

        run(first, test)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())

        async def test() -> None:
            async with Cluster(ConnectionSettings(address, retry_timeout_s=0.2)) as cluster:
                with pytest.raises(Unreachable, match=address):
                    await cluster.metadata(None)

        asyncio.run(test())


def test_the_reason_is_told_to_who_asks_before_the_next_attempt() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())
        settings = ConnectionSettings(address, backoff_min_s=100.0, backoff_max_s=100.0)

        async def test() -> None:
            async with Cluster(settings) as cluster:
                told = []
                for _ in range(2):
                    with pytest.raises(Unreachable) as caught:
                        await cluster.connection()
                    told.append(str(caught.value))
            assert told[0] == told[1]

        asyncio.run(test())


class Mute:
    """A server that says `answer` to whatever comes, and then nothing."""

    def __init__(self, answer: bytes = b"") -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._answer = answer
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        try:
            while True:
                connection, _ = self._socket.accept()
                self._held.append(connection)
                connection.sendall(self._answer)
        except OSError:
            return

    def __enter__(self) -> Mute:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for connection in self._held:
            connection.close()


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async def test(address: str) -> None:
        async with Cluster(ConnectionSettings(address, first_timeout_s=0.2)) as cluster:
            with pytest.raises(Unanswered, match="is it a Kafka broker"):
                await cluster.call(m.MetadataRequest(topics=[]), ANY)

    with Mute() as server:
        asyncio.run(test(server.address))


def test_a_server_of_another_protocol() -> None:
    async def test(address: str) -> None:
        async with Cluster(ConnectionSettings(address)) as cluster:
            with pytest.raises(ClientError, match="no Kafka broker"):
                await cluster.call(m.MetadataRequest(topics=[]), ANY)

    with Mute(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        asyncio.run(test(server.address))


def test_what_a_broker_does_not_have(broker: Broker) -> None:
    async def test(cluster: Cluster) -> None:
        with pytest.raises(Unsupported, match="does not offer Vote"):
            await cluster.call(m.VoteRequest())

    run(broker, test)
