"""Applications with one fault each that needs its moment: each is caught, and made right it passes.

    an update that is lost          a paused owner of a partition writes what it has read before
    a record that is sent twice     the application sends again what an idempotent producer has sent
    a commit that overtakes         records are worked on side by side, the newest done commits
    a timer that commits            what is fetched and not worked off
    an order that is lost           a failed send comes again behind its successor

Searches begin at a seed that shows the fault, so that they are short; seeds from 0 on show each.
`KWIRE_EFFORT` multiplies the seeds of the mended ones (`make stress`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from kwire.testing.simulation import (
    KeyOrder,
    NothingDoubled,
    NothingLost,
    SimulationFailed,
    simulate,
)

aiokafka = pytest.importorskip("aiokafka")
from aiokafka.errors import KafkaError  # noqa: E402

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))
TOPIC = "payments"
DRAIN_S = 40.0


def consumer_of(bootstrap: str, **options: object) -> object:
    return aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="accounts",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        **options,
    )


async def pay(bootstrap: str, numbers, sent: Callable[[bytes, bytes], None]) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True
    ) as producer:
        for number in numbers:
            value, key = b"payment-%d" % number, b"account-%d" % (number % 3)
            await producer.send_and_wait(TOPIC, value, key=key)
            sent(value, key)
            await asyncio.sleep(0.4)


async def over(cluster, *processes) -> None:
    for process in processes:
        await process.finished()
    await cluster.faults_over()
    await asyncio.sleep(DRAIN_S)


# -- an update that is lost


class Balances:
    """A table of accounts: which payments are in which; `put` writes a whole row, as it was read
    plus one. With `version` only where nobody has written in between."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[int, frozenset[bytes]]] = {}

    async def read(self, key: bytes) -> tuple[int, frozenset[bytes]]:
        await asyncio.sleep(0.3)
        return self.rows.get(key, (0, frozenset()))

    async def put(self, key: bytes, row: frozenset[bytes], version: int | None) -> bool:
        await asyncio.sleep(0.3)
        now = self.rows.get(key, (0, frozenset()))[0]
        if version is not None and version != now:
            return False
        self.rows[key] = now + 1, row
        return True


async def keep_accounts(bootstrap: str, balances: Balances, *, checks_version: bool) -> None:
    consumer = consumer_of(bootstrap)
    async with consumer:
        async for record in consumer:
            done = False
            while not done:
                version, row = await balances.read(record.key)
                done = await balances.put(
                    record.key, row | {record.value}, version if checks_version else None
                )
            await consumer.commit()


async def _accounts(cluster, checks_version: bool) -> None:
    await cluster.create_topic(TOPIC, 3)
    check, balances = NothingLost(), Balances()

    async def first() -> None:
        await keep_accounts(cluster.bootstrap, balances, checks_version=checks_version)

    async def second() -> None:
        await keep_accounts(cluster.bootstrap, balances, checks_version=checks_version)

    cluster.process(first)
    cluster.process(second)
    paying = cluster.process(
        pay, cluster.bootstrap, cluster.operations(60), lambda value, key: check.sent(value)
    )
    await over(cluster, paying)
    for _, row in balances.rows.values():
        for value in row:
            check.received(value)
    check.verify()


PAUSES = ("process paused",)


@simulate(first_seed=2, seeds=30, minutes=0.5, faults=PAUSES, brokers=1, processes=1, shrink_runs=0)
async def accounts_written_over(cluster) -> None:
    await _accounts(cluster, checks_version=False)


@simulate(seeds=EFFORT, minutes=0.5, faults=PAUSES, brokers=1, processes=1)
async def accounts_with_versions(cluster) -> None:
    await _accounts(cluster, checks_version=True)


# -- a record that is sent twice


async def pay_again(bootstrap: str, numbers, sent: Callable[[bytes], None], again: bool) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True
    ) as producer:
        for number in numbers:
            value = b"payment-%d" % number
            try:
                await asyncio.wait_for(producer.send_and_wait(TOPIC, value), 2.0 if again else None)
            except (TimeoutError, KafkaError):
                if not again:
                    raise
                await producer.send_and_wait(TOPIC, value)
            sent(value)
            await asyncio.sleep(0.4)


async def _paid(cluster, again: bool) -> None:
    await cluster.create_topic(TOPIC, 1)
    lost, doubled = NothingLost(), NothingDoubled()

    def sent(value: bytes) -> None:
        lost.sent(value)
        doubled.sent(value)

    paying = cluster.process(pay_again, cluster.bootstrap, cluster.operations(40), sent, again)
    await over(cluster, paying)
    for check in (lost, doubled):
        await check.read(cluster, TOPIC)
        check.verify()


BROKERS_FAIL = ("broker killed", "broker paused", "broker isolated", "leader moved")


@simulate(first_seed=0, seeds=30, minutes=0.5, faults=BROKERS_FAIL, processes=1, shrink_runs=0)
async def paid_again_after_a_timeout(cluster) -> None:
    await _paid(cluster, again=True)


@simulate(seeds=EFFORT, minutes=0.5, faults=BROKERS_FAIL, processes=1)
async def paid_by_the_producer_s_own_retries(cluster) -> None:
    await _paid(cluster, again=False)


# -- commits that overtake


async def book_side_by_side(bootstrap: str, book, *, waits_for_all: bool) -> None:
    """Records of a batch are booked side by side; some take longer than others."""
    consumer = consumer_of(bootstrap)

    async def one(partition, record) -> None:
        await book(record.value)
        if not waits_for_all:
            await consumer.commit({partition: record.offset + 1})

    async with consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=1000, max_records=20)
            async with asyncio.TaskGroup() as group:
                for partition, records in batches.items():
                    for record in records:
                        group.create_task(one(partition, record))
            if waits_for_all and batches:
                await consumer.commit()


async def book_and_commit_by_a_timer(bootstrap: str, book, *, knows_what_is_done: bool) -> None:
    """A task commits each second: where the consumer is, or what has been booked."""
    consumer = consumer_of(bootstrap)
    done: dict[object, int] = {}

    async def commit() -> None:
        while True:
            await asyncio.sleep(1)
            if knows_what_is_done:
                if done:
                    await consumer.commit(dict(done))
            else:
                await consumer.commit()

    async with consumer, asyncio.TaskGroup() as group:
        group.create_task(commit())
        while True:
            for partition, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    await book(record.value)
                    done[partition] = record.offset + 1


async def _booked(cluster, booking: Callable) -> None:
    await cluster.create_topic(TOPIC, 2)
    check = NothingLost()

    async def book(value: bytes) -> None:
        number = int(value.rpartition(b"-")[2])
        await asyncio.sleep(0.9 if number % 4 == 0 else 0.1)
        check.received(value)

    async def booked() -> None:
        await booking(cluster.bootstrap, book)

    cluster.process(booked)
    paying = cluster.process(
        pay, cluster.bootstrap, cluster.operations(50), lambda value, key: check.sent(value)
    )
    await over(cluster, paying)
    check.verify()


@simulate(
    first_seed=0,
    seeds=30,
    minutes=0.5,
    faults=["process killed"],
    brokers=1,
    processes=1,
    shrink_runs=0,
)
async def booked_side_by_side(cluster) -> None:
    await _booked(cluster, lambda *given: book_side_by_side(*given, waits_for_all=False))


@simulate(seeds=EFFORT, minutes=0.5, faults=["process killed"], brokers=1, processes=1)
async def booked_side_by_side_and_awaited(cluster) -> None:
    await _booked(cluster, lambda *given: book_side_by_side(*given, waits_for_all=True))


@simulate(
    first_seed=4,
    seeds=30,
    minutes=0.5,
    faults=["process killed"],
    brokers=1,
    processes=1,
    shrink_runs=0,
)
async def committed_by_a_timer(cluster) -> None:
    await _booked(
        cluster, lambda *given: book_and_commit_by_a_timer(*given, knows_what_is_done=False)
    )


@simulate(seeds=EFFORT, minutes=0.5, faults=["process killed"], brokers=1, processes=1)
async def committed_by_a_timer_when_done(cluster) -> None:
    await _booked(
        cluster, lambda *given: book_and_commit_by_a_timer(*given, knows_what_is_done=True)
    )


# -- an order that is lost


async def send_two_at_once(bootstrap: str, numbers, order: KeyOrder, in_order: bool) -> None:
    """Each record is sent until it is there; in pairs side by side, or one after the other."""
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True
    ) as producer:

        async def send(value: bytes) -> None:
            if in_order:
                await producer.send_and_wait(TOPIC, value, key=b"k")
                return
            while True:
                try:
                    await asyncio.wait_for(producer.send_and_wait(TOPIC, value, key=b"k"), 3)
                    return
                except (TimeoutError, KafkaError):
                    await asyncio.sleep(0.1)

        for number in numbers:
            pair = [b"%d-%d" % (number, half) for half in range(2)]
            for value in pair:
                order.sending(value, b"k")
            if in_order:
                for value in pair:
                    await send(value)
            else:
                await asyncio.gather(*(send(value) for value in pair))
            await asyncio.sleep(0.5)


async def _ordered(cluster, in_order: bool) -> None:
    await cluster.create_topic(TOPIC, 1)
    order = KeyOrder()
    sending = cluster.process(
        send_two_at_once, cluster.bootstrap, cluster.operations(30), order, in_order
    )
    await over(cluster, sending)
    await order.read(cluster, TOPIC)
    order.verify()


@simulate(first_seed=0, seeds=30, minutes=0.5, faults=BROKERS_FAIL, processes=1, shrink_runs=0)
async def sent_in_pairs(cluster) -> None:
    await _ordered(cluster, in_order=False)


@simulate(seeds=EFFORT, minutes=0.5, faults=BROKERS_FAIL, processes=1)
async def sent_one_after_the_other(cluster) -> None:
    await _ordered(cluster, in_order=True)


CAUGHT = {
    accounts_written_over: "was acknowledged and is lost",
    paid_again_after_a_timeout: "is there 2 times",
    booked_side_by_side: "was acknowledged and is lost",
    committed_by_a_timer: "was acknowledged and is lost",
    sent_in_pairs: "KeyOrder",
}
MENDED = (
    accounts_with_versions,
    paid_by_the_producer_s_own_retries,
    booked_side_by_side_and_awaited,
    committed_by_a_timer_when_done,
    sent_one_after_the_other,
)


@pytest.mark.parametrize("search", CAUGHT, ids=lambda one: one.__name__)
def test_a_fault_that_needs_its_moment_is_caught(search) -> None:
    with pytest.raises(SimulationFailed, match=CAUGHT[search]):
        search()


@pytest.mark.parametrize("search", MENDED, ids=lambda one: one.__name__)
def test_the_mended_one_passes(search) -> None:
    search()
