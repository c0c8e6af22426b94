"""A producer that many share: its batches, and that each record is kept once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.settings import ConnectionSettings
from kwire.client.shared_producer import Sent, SharedProducer
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record
from kwire.testing import Broker

T = TypeVar("T")
WAIT_S = 60.0
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with Broker() as one:
        yield one


@pytest.fixture
def broker(started: Broker) -> Iterator[Broker]:
    started.faults.clear()
    yield started
    started.faults.clear()


def run(broker: Broker, test: Callable[[Cluster], Awaitable[T]], **more: float) -> T:
    async def inner() -> T:
        settings = ConnectionSettings(broker.bootstrap, **more)  # type: ignore[arg-type]
        async with Cluster(settings) as cluster:
            return await asyncio.wait_for(test(cluster), WAIT_S)

    return asyncio.run(inner())


def records(*values: str) -> list[Record]:
    return [Record(0, NOW_MS, None, value.encode()) for value in values]


def values(broker: Broker, topic: str) -> list[str]:
    return [(one.value or b"").decode() for one in broker.topic(topic).records()]


async def all_sent(producer: SharedProducer, topic: str, count: int) -> list[dict[int, Sent]]:
    """Senders that come together, each with one record."""
    return await asyncio.gather(
        *(producer.send(topic, {at % 2: records(str(at))}) for at in range(count))
    )


@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_senders_share_batches(broker: Broker, acks: int) -> None:
    name = f"shared-{acks}"
    broker.topic(name).create(partitions=2)

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster, acks=acks)
        sent = await all_sent(producer, name, 200)
        offsets = [one[at % 2].offsets for at, one in enumerate(sent)]
        assert offsets == [[-1 if acks == 0 else at // 2] for at in range(200)]
        await producer.close()

    run(broker, test)
    wait = broker.topic(name)
    while sum(wait.end_offsets().values()) < 200:
        pass
    assert sorted(values(broker, name), key=int) == [str(at) for at in range(200)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("leader-moved", {}),
        ("drop-request", {"how": "close"}),
        ("drop-reply", {"how": "close"}),
        ("error", {"code": "REQUEST_TIMED_OUT", "after": True}),
        ("error", {"code": "KAFKA_STORAGE_ERROR"}),
        ("error", {"code": "UNKNOWN_TOPIC_OR_PARTITION"}),
        ("error", {"code": "OUT_OF_ORDER_SEQUENCE_NUMBER"}),
    ],
)
def test_each_record_is_kept_once(
    broker: Broker, kind: str, options: dict[str, str | bool]
) -> None:
    name = "once-" + "-".join([kind, *map(str, options.values())]).lower()
    broker.topic(name).create(partitions=2)

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        await all_sent(producer, name, 4)
        with broker.faults.add(kind, api="Produce", times=2, topic=name, **options):
            sent = await all_sent(producer, name, 20)
        assert [one.error for answered in sent for one in answered.values()] == [None] * 20
        again = await producer.send(name, {0: records("x"), 1: records("y")})
        assert [one.offsets for one in again.values()] == [[12], [12]]

    run(broker, test)
    expected = [str(at) for at in (*range(4), *range(20))] + ["x", "y"]
    assert sorted(values(broker, name)) == sorted(expected)


def test_without_sequences_nothing_is_sent_twice(broker: Broker) -> None:
    """Nobody knows what became of the batch, and acks=1 has no numbers that would tell."""
    broker.topic("unsure").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster, acks=1)
        await producer.send("unsure", {0: records("a")})
        with broker.faults.add("drop-reply", api="Produce", times=1, topic="unsure"):
            sent = await producer.send("unsure", {0: records("b")})
        assert isinstance(sent[0].error, ClientError)
        assert sent[0].offsets == []
        assert (await producer.send("unsure", {0: records("c")}))[0].offsets == [2]

    run(broker, test)
    assert values(broker, "unsure") == ["a", "b", "c"]


def test_one_senders_record_does_not_fail_anothers(broker: Broker) -> None:
    """A record that the broker refuses is in one batch with records of others."""
    broker.topic("together").create(config={"message.timestamp.after.max.ms": 1000})

    async def test(cluster: Cluster) -> None:
        now_ms = cluster.clock.wall_ms()
        producer = SharedProducer(cluster)
        await producer.send("together", {0: [Record(0, now_ms, None, b"first")]})
        good = [Record(0, now_ms, None, b"good")]
        bad = [*good, Record(0, now_ms + 3_600_000, None, b"bad")]
        sent = await asyncio.gather(
            *(producer.send("together", {0: one}) for one in (good, bad, good))
        )
        assert [one[0].offsets for one in sent] == [[1], [], [2]]
        error = sent[1][0].error
        assert isinstance(error, RequestFailed)
        assert error.code == ErrorCode.INVALID_TIMESTAMP
        assert sent[1][0].failed_at == 1

    run(broker, test)
    assert values(broker, "together") == ["first", "good", "good"]


def test_batches_get_smaller_until_the_topic_takes_them(broker: Broker) -> None:
    broker.topic("narrow").create(config={"max.message.bytes": 2000})

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        many = [Record(0, NOW_MS, None, b"%03d" % at + b"x" * 300) for at in range(50)]
        found = (await producer.send("narrow", {0: many}))[0]
        assert found.offsets == list(range(50))
        found = (
            await producer.send("narrow", {0: [many[0], many[1]._replace(value=b"x" * 3000)]})
        )[0]
        assert isinstance(found.error, RequestFailed)
        assert (found.error.code, found.failed_at) == (ErrorCode.MESSAGE_TOO_LARGE, 1)
        assert found.offsets == [50]

    run(broker, test)
    assert [one[:3] for one in values(broker, "narrow")] == [
        *(f"{at:03d}" for at in range(50)),
        "000",
    ]


def test_header_names_count_by_their_bytes(broker: Broker) -> None:
    """Four records of 300 kB are over what a batch may have, though they have 400,000 characters:
    they go in several, and those behind them go too."""
    broker.topic("wide-names").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        wide = [Record(0, NOW_MS, None, b"x", [("漢" * 100_000, b"x")]) for _ in range(4)]
        found, behind = await asyncio.gather(
            producer.send("wide-names", {0: wide}), producer.send("wide-names", {0: records("y")})
        )
        assert (found[0].error, found[0].offsets) == (None, [0, 1, 2, 3])
        assert behind[0].offsets == [4]

    run(broker, test)


def test_what_is_taken_apart_gets_smaller_until_each_is_alone(broker: Broker) -> None:
    """Whatever the broker says it is too large for: each round is smaller, and the one record that
    is refused alone is named; nobody is waited for longer than they say."""
    broker.topic("refusing").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        many = records(*map(str, range(1000)))
        with broker.faults.add(
            "error", api="Produce", topic="refusing", code="MESSAGE_TOO_LARGE"
        ) as fault:
            sent = (await producer.send("refusing", {0: many}))[0]
            assert isinstance(sent.error, RequestFailed)
            assert (sent.error.code, sent.failed_at) == (ErrorCode.MESSAGE_TOO_LARGE, 0)
            assert fault.hits <= 12
            hits = fault.hits
            sent = (await SharedProducer(cluster).send("refusing", {0: many}, timeout_s=0.0))[0]
            assert isinstance(sent.error, RequestFailed)
            assert fault.hits == hits + 1
        with broker.faults.add(
            "error", api="Produce", topic="refusing", code="CORRUPT_MESSAGE", times=1
        ):
            sent = (await producer.send("refusing", {0: records("a")}))[0]
        assert (sent.failed_at, sent.offsets) == (0, [])
        assert (await producer.send("refusing", {0: records("kept")}))[0].offsets == [0]

    run(broker, test)


def test_too_few_replicas_are_told_at_once(broker: Broker) -> None:
    broker.topic("few").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        for after in (False, True):
            code = "NOT_ENOUGH_REPLICAS_AFTER_APPEND" if after else "NOT_ENOUGH_REPLICAS"
            with broker.faults.add(
                "error", api="Produce", topic="few", times=1, code=code, after=after
            ) as fault:
                sent = await producer.send("few", {0: records(str(after))})
                assert isinstance(sent[0].error, RequestFailed)
                assert sent[0].error.code.name == code
                assert fault.hits == 1
            assert (await producer.send("few", {0: records("kept")}))[0].error is None

    run(broker, test)
    assert values(broker, "few") == ["kept", "True", "kept"]


def test_a_sender_waits_no_longer_than_it_says(broker: Broker) -> None:
    broker.topic("late").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        with broker.faults.add("leader-moved", api="Produce", topic="late"):
            sent = await producer.send("late", {0: records("a")}, timeout_s=0.3)
            assert isinstance(sent[0].error, RequestFailed)
            assert sent[0].error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await producer.send("late", {0: records("b")}))[0].offsets == [0]

    run(broker, test)
    assert values(broker, "late") == ["b"]


def test_what_waits_when_it_is_closed_fails(broker: Broker) -> None:
    broker.topic("closed").create()

    async def test(cluster: Cluster) -> None:
        producer = SharedProducer(cluster)
        with broker.faults.add("leader-moved", api="Produce", topic="closed"):
            sending = asyncio.ensure_future(producer.send("closed", {0: records("a")}))
            while not producer.is_busy:
                await asyncio.sleep(0)
            await producer.close()
            sent = await sending
        assert isinstance(sent[0].error, ClientError)

    run(broker, test)
