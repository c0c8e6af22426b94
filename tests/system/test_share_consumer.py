"""`kwire.client.ShareConsumer` with a broker: what is accepted, released, rejected, renewed, and
what comes again. `tests/differential/test_share_consumer_live.py` asks Apache Kafka the same."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import pytest

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.client.share_consumer import Delivered, ShareConsumer
from kwire.testing.cluster import Broker
from tests.support.share.dialogue import OFTEN, PROPERTIES
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_values

TIMEOUT_S = 60.0
T = TypeVar("T")
_numbers = itertools.count()


class Queue(NamedTuple):
    """A topic of three partitions, and a group that reads it from its beginning."""

    bootstrap: str
    topic: str
    group: str

    def fill(self, *values: bytes, partition: int = 0) -> None:
        with WireClient(self.bootstrap) as client:
            produce_values(client, self.topic, partition, list(values))

    @asynccontextmanager
    async def consumer(self, *, explicit: bool = False) -> AsyncIterator[ShareConsumer]:
        settings = ConnectionSettings(bootstrap=self.bootstrap)
        async with (
            Cluster(settings) as cluster,
            ShareConsumer(
                cluster, self.group, [self.topic], explicit=explicit, wait_ms=200
            ) as consumer,
        ):
            yield consumer


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**PROPERTIES, **OFTEN}) as started:
        yield started


@pytest.fixture
def queue(broker: Broker) -> Queue:
    number = next(_numbers)
    made = Queue(broker.bootstrap, f"jobs-{number}", f"workers-{number}")
    with WireClient(made.bootstrap) as client:
        client.create_topic(made.topic, 3)
        set_group_config(
            client,
            made.group,
            share_auto_offset_reset="earliest",
            share_record_lock_duration_ms="60000",
        )
    return made


async def polled(consumer: ShareConsumer, count: int) -> list[Delivered]:
    """So many records, however many polls that takes."""
    found: list[Delivered] = []
    end_s = time.monotonic() + TIMEOUT_S
    while len(found) < count:
        assert time.monotonic() < end_s, f"{len(found)} of {count} records"
        found += await consumer.poll()
    return found


async def nothing_is_left(consumer: ShareConsumer) -> bool:
    return not await consumer.poll() and not await consumer.poll()


def values(delivered: list[Delivered]) -> list[bytes]:
    return sorted(bytes(one.record.value or b"") for one in delivered)


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(2 * TIMEOUT_S):
            return await work()

    return asyncio.run(limited())


def test_what_a_poll_gave_is_accepted_by_the_next(queue: Queue) -> None:
    for partition in range(3):
        queue.fill(b"%d-a" % partition, b"%d-b" % partition, partition=partition)

    async def work() -> None:
        async with queue.consumer() as consumer:
            found = await polled(consumer, 6)
            assert len(set(values(found))) == 6
            assert {one.delivery_count for one in found} == {1}
            assert {(one.topic, one.partition) for one in found} == {
                (queue.topic, partition) for partition in range(3)
            }
            assert await consumer.commit() == []
        async with queue.consumer() as consumer:
            assert await nothing_is_left(consumer)

    run(work)


def test_a_record_is_released_rejected_or_accepted(queue: Queue) -> None:
    queue.fill(b"done", b"again", b"never")

    async def work() -> None:
        async with queue.consumer(explicit=True) as consumer:
            for one in await polled(consumer, 3):
                act = {b"done": consumer.accept, b"again": consumer.release}.get(
                    bytes(one.record.value or b""), consumer.reject
                )
                act(one)
            again = await polled(consumer, 1)
            assert values(again) == [b"again"]
            assert again[0].delivery_count == 2
            consumer.accept(*again)
            assert await consumer.commit() == []
            assert await nothing_is_left(consumer)

    run(work)


def test_what_a_member_holds_is_free_when_it_goes(queue: Queue) -> None:
    queue.fill(b"1", b"2")

    async def work() -> None:
        async with queue.consumer(explicit=True) as first:
            assert len(await polled(first, 2)) == 2
        async with queue.consumer(explicit=True) as second:
            again = await polled(second, 2)
            assert {one.delivery_count for one in again} == {2}
            second.accept(*again)

    run(work)


def test_a_record_that_was_given_back_cannot_be_renewed_or_accepted(queue: Queue) -> None:
    queue.fill(b"1", b"2")

    async def work() -> None:
        async with queue.consumer(explicit=True) as consumer:
            first, second = await polled(consumer, 2)
            assert await consumer.renew(first, second) == []
            consumer.release(first)
            assert await consumer.commit() == []
            (failed,) = await consumer.renew(first)
            assert (failed.topic, failed.offsets) == (queue.topic, [first.record.offset])
            consumer.accept(first)
            (failed,) = await consumer.commit()
            assert "acknowledge" in str(failed.error)
            consumer.accept(second)
            assert await consumer.commit() == []

    run(work)


def test_members_share_the_records_and_none_comes_twice(queue: Queue) -> None:
    for at in range(30):
        queue.fill(*(b"%d-%d" % (at, one) for one in range(10)), partition=at % 3)

    async def work() -> None:
        found: list[bytes] = []

        async def member() -> None:
            async with queue.consumer() as consumer:
                while len(found) < 300:
                    found.extend(values(await consumer.poll()))
                await consumer.commit()

        await asyncio.gather(*(member() for _ in range(4)))
        assert len(set(found)) == len(found) == 300

    run(work)
