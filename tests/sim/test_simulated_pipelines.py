"""Applications that owe each record once: examples/simulation/outbox.py and pipeline.py.

A relay whose producer is not idempotent is caught, and so is a stage that reads what is not
committed; the mended ones pass. The searches for the faulty ones begin at a seed that shows it.
`KWIRE_EFFORT` multiplies the seeds of the mended ones (`make stress`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from kwire.testing.simulation import (
    ExactlyOnce,
    KeyOrder,
    NothingDoubled,
    NothingLost,
    OffsetsForward,
    SimulationFailed,
    simulate,
    watch,
)
from tests.support.settling import settled

aiokafka = pytest.importorskip("aiokafka")
EXAMPLES = Path(__file__).parents[2] / "examples" / "simulation"
sys.path.insert(0, str(EXAMPLES))

import outbox  # noqa: E402
import pipeline  # noqa: E402

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))


async def _relayed(cluster, transactional_id: str | None) -> None:
    await cluster.create_topic(outbox.TOPIC, 2)
    table = outbox.Outbox()
    checks = NothingLost(), NothingDoubled(), KeyOrder()

    async def relay() -> None:
        await outbox.relay(cluster.bootstrap, table, transactional_id=transactional_id)

    async def emptied() -> bool:
        return not table.waiting(1)

    cluster.process(relay)
    for number in cluster.operations(30):
        key, event = b"customer-%d" % (number % 3), b"event-%d" % number
        table.write(key, event)
        for check in checks:
            check.sending(event, key)
            check.sent(event, key)
        await asyncio.sleep(0.8)
    await cluster.faults_over()
    await settled(emptied)
    for check in checks:
        await check.read(cluster, outbox.TOPIC)
        check.verify()


@simulate(first_seed=1, seeds=40, minutes=0.5, faults=["replies lost"], processes=1, shrink_runs=8)
async def relayed_without_idempotence(cluster) -> None:
    await _relayed(cluster, None)


@simulate(seeds=2 * EFFORT, minutes=0.5, processes=1)
async def relayed_in_transactions(cluster) -> None:
    await _relayed(cluster, "relay")


def test_an_outbox_relay_without_idempotence_is_caught() -> None:
    with pytest.raises(SimulationFailed, match=r"NothingDoubled:\nb'event-.* is there 2 times"):
        relayed_without_idempotence()


def test_a_relay_that_sends_in_transactions_passes() -> None:
    relayed_in_transactions()


async def _invoiced(cluster, isolation_level: str) -> None:
    for topic in ("orders", "prices", "invoices"):
        await cluster.create_topic(topic, 2)
    await pipeline.begin(cluster.bootstrap, "orders", "prices")
    await pipeline.begin(cluster.bootstrap, "prices", "invoices")
    forward, order = OffsetsForward(), KeyOrder()
    numbers = cluster.operations(6)

    async def ordering() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, enable_idempotence=True
        )
        watch(producer, order)
        async with producer:
            for number in numbers:
                for line in range(8):
                    value, key = b"%d-%d" % (number, line), b"%d" % (line % 3)
                    await producer.send_and_wait("orders", value, key=key)
                await asyncio.sleep(3)

    async def all_invoiced() -> bool:
        ordered = await cluster.records("orders")
        return len(await cluster.records("invoices")) >= len(ordered)

    async def priced(order: bytes) -> bytes:
        await asyncio.sleep(0.1)
        return order + b" priced"

    async def invoiced(price: bytes) -> bytes:
        return price.removesuffix(b" priced")

    async def pricing() -> None:
        await pipeline.stage(cluster.bootstrap, "orders", "prices", priced)

    async def invoicing() -> None:
        await pipeline.stage(
            cluster.bootstrap, "prices", "invoices", invoiced, isolation_level=isolation_level
        )

    taken = cluster.process(ordering)
    cluster.process(pricing)
    cluster.process(invoicing)
    await taken.finished()
    await cluster.faults_over()
    await settled(all_invoiced)
    await ExactlyOnce().compare(cluster, "orders", "invoices")
    await order.read(cluster, "invoices")
    order.verify()
    await forward.read_commits(cluster)
    forward.verify()


@simulate(
    first_seed=5, seeds=40, minutes=0.5, faults=["process killed"], processes=1, shrink_runs=4
)
async def invoiced_from_what_is_not_committed(cluster) -> None:
    await _invoiced(cluster, "read_uncommitted")


@simulate(seeds=2 * EFFORT, minutes=0.5, processes=1)
async def invoiced_from_what_is_committed(cluster) -> None:
    await _invoiced(cluster, "read_committed")


def test_a_stage_that_reads_what_is_not_committed_is_caught() -> None:
    with pytest.raises(SimulationFailed, match=r"ExactlyOnce:\nb'\d-\d' is there 2 times"):
        invoiced_from_what_is_not_committed()


def test_a_stage_that_reads_what_is_committed_passes() -> None:
    invoiced_from_what_is_committed()
