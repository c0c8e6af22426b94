"""An application on `kwire.client` against a broker on the simulated world, killed under it."""

from __future__ import annotations

import asyncio

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.consumer import Consumer
from kwire.client.errors import ClientError, Unreachable
from kwire.client.offsets import EARLIEST
from kwire.client.producer import Outgoing, Producer
from kwire.client.settings import ConnectionSettings
from kwire.testing.simulation import SimulatedHost, Simulation
from tests.sim.application import PORT, quiet, start
from tests.support.effort import seeds

__all__ = ["quiet"]  # a fixture of every test here

RECORDS = 60


def _cluster(client: SimulatedHost) -> Cluster:
    settings = ConnectionSettings(
        f"broker:{PORT}", connect_timeout_s=2, first_timeout_s=5, request_timeout_s=10
    )
    return Cluster(settings, loop=client.loop, random=client.random, clock=client.clock)


async def _produce(client: SimulatedHost, sent: list[bytes]) -> None:
    """A record a second, each waited for."""
    async with _cluster(client) as cluster:
        await Admin(cluster).topics.create("readings", partitions=1)
        producer = Producer(cluster)
        for number in range(RECORDS):
            value = b"%d" % number
            await producer.send("readings", [Outgoing(value=value)])
            sent.append(value)
            await asyncio.sleep(1)


async def _consume(client: SimulatedHost, count: int) -> list[bytes]:
    """At least `count` records of a group that commits what it has read."""
    found: list[bytes] = []
    async with (
        _cluster(client) as cluster,
        Consumer(cluster, "readers", ["readings"], start=EARLIEST) as consumer,
    ):
        while len(found) < count:
            found += [each.record.value or b"" for each in await consumer.poll()]
            await consumer.commit()
    return found


@pytest.mark.parametrize("seed", seeds(3))
def test_an_idempotent_producer_over_kills_sends_each_record_once(seed: int) -> None:
    simulation = Simulation(seed)
    broker, client = simulation.host("broker"), simulation.host("client")
    start(broker)
    sent: list[bytes] = []
    producing = client.loop.create_task(_produce(client, sent))
    for _ in range(3):
        simulation.run_for(5 + simulation.random.below(10))
        broker.crash(power_loss=False)
        simulation.run_for(1)
        broker.restart()
        node = start(broker)

    async def until_sent() -> None:
        await producing

    simulation.run(client, until_sent())
    assert len(sent) == RECORDS
    assert simulation.run(client, _consume(client, RECORDS)) == sent
    simulation.run(broker, node.stop())


@pytest.mark.parametrize("seed", seeds(2))
def test_a_member_of_a_group_goes_on_when_its_coordinator_was_killed(seed: int) -> None:
    simulation = Simulation(seed)
    broker, client = simulation.host("broker"), simulation.host("client")
    start(broker)
    sent: list[bytes] = []
    producing = client.loop.create_task(_produce(client, sent))
    reading = client.loop.create_task(_consume(client, RECORDS))
    simulation.run_for(20)
    broker.crash(power_loss=False)
    simulation.run_for(1)
    broker.restart()
    node = start(broker)

    async def both() -> list[bytes]:
        await producing
        return await reading

    found = simulation.run(client, both())
    assert list(dict.fromkeys(found)) == sent  # at least once
    simulation.run(broker, node.stop())


def test_a_cluster_that_is_gone_is_given_up_in_time() -> None:
    simulation = Simulation(1)
    broker, client = simulation.host("broker"), simulation.host("client")
    start(broker)

    async def ask() -> float:
        async with _cluster(client) as cluster:
            await cluster.metadata(None)
            broker.crash(power_loss=False)
            began_s = client.loop.time()
            with pytest.raises(ClientError) as caught:
                await cluster.metadata(None)
            assert isinstance(caught.value, Unreachable)
            return client.loop.time() - began_s

    assert simulation.run(client, ask()) <= 20 + 5
