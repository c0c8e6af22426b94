"""An ordinary aiokafka application, unmodified, against a broker on the simulated world: minutes
of its time pass in a second of ours, and the broker may be killed under it.
"""

from __future__ import annotations

import asyncio

import pytest

from kwire.node.node import Node
from kwire.testing.simulation import SimulatedHost, Simulation
from tests.sim import application
from tests.sim.application import PORT, quiet, start
from tests.support.effort import seeds

aiokafka = pytest.importorskip("aiokafka")

__all__ = ["quiet"]  # a fixture of every test here

RECORDS = 60
# The application stamps its records with the time of our world.
SETTINGS = {**application.SETTINGS, "log.message.timestamp.type": "LogAppendTime"}


def _start(host: SimulatedHost) -> Node:
    return start(host, SETTINGS)


async def _produce(sent: list[bytes]) -> None:
    """A record a second, each waited for."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=f"broker:{PORT}", enable_idempotence=True, request_timeout_ms=10_000
    )
    await producer.start()
    try:
        for number in range(RECORDS):
            value = b"%d" % number
            await producer.send_and_wait("readings", value)
            sent.append(value)
            await asyncio.sleep(1)
    finally:
        await producer.stop()


async def _consume(count: int) -> list[bytes]:
    """The first `count` records, read in a group and committed."""
    consumer = aiokafka.AIOKafkaConsumer(
        "readings",
        bootstrap_servers=f"broker:{PORT}",
        group_id="readers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        found = [(await consumer.getone()).value for _ in range(count)]
        await consumer.commit()
        return found
    finally:
        await consumer.stop()


def test_a_group_reads_what_was_sent_and_goes_on_where_it_stopped() -> None:
    simulation = Simulation(1)
    broker, client = simulation.host("broker"), simulation.host("client")
    node = _start(broker)
    sent: list[bytes] = []
    began_s = client.loop.time()
    simulation.run(client, _produce(sent))
    assert client.loop.time() - began_s >= RECORDS
    assert simulation.run(client, _consume(RECORDS // 2)) == sent[: RECORDS // 2]
    assert simulation.run(client, _consume(RECORDS // 2)) == sent[RECORDS // 2 :]
    simulation.run(broker, node.stop())


@pytest.mark.parametrize("seed", seeds(3))
def test_an_idempotent_producer_over_kills_sends_each_record_once(seed: int) -> None:
    simulation = Simulation(seed)
    broker, client = simulation.host("broker"), simulation.host("client")
    _start(broker)
    sent: list[bytes] = []
    producing = client.loop.create_task(_produce(sent))
    for _ in range(3):
        simulation.run_for(5 + simulation.random.below(10))
        broker.crash(power_loss=False)
        simulation.run_for(1)
        broker.restart()
        node = _start(broker)

    async def until_sent() -> None:
        await producing

    simulation.run(client, until_sent())
    assert len(sent) == RECORDS
    assert simulation.run(client, _consume(RECORDS)) == sent
    simulation.run(broker, node.stop())
