"""A broker that was stopped in order while a dead letter was on its way gave it up: who waited for
it archived the record as if its topic had refused it, and no dead letter was ever written. What is
on its way when a broker stops is the next leader's to write, as when it is killed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.configs import Resource
from kwire.client.fetching import Fetcher
from kwire.client.producer import Outgoing, Producer
from kwire.client.settings import ConnectionSettings
from kwire.client.share_consumer import ShareConsumer
from kwire.node.dead_letters import DeadLetterEffects
from kwire.node.stopping import StopSequence
from kwire.pending import Pending
from kwire.share.coordinator_persister import CoordinatorPersister
from kwire.share.persister import PartitionResult, WritePartition
from kwire.share.states import RecordState
from kwire.testing.simulation import SimulatedHost, Simulation
from tests.sim.application import PORT, start

TOPIC, DEAD, GROUP = "jobs", "dlq.jobs", "workers"


def _cluster(client: SimulatedHost) -> Cluster:
    settings = ConnectionSettings(f"broker:{PORT}")
    return Cluster(settings, loop=client.loop, random=client.random, clock=client.clock)


async def _reject(client: SimulatedHost) -> None:
    async with _cluster(client) as cluster:
        admin = Admin(cluster)
        await admin.topics.create(TOPIC, partitions=1)
        configs = {"errors.deadletterqueue.group.enable": "true"}
        await admin.topics.create(DEAD, partitions=1, configs=configs)
        changes = {
            "share.auto.offset.reset": "earliest",
            "errors.deadletterqueue.topic.name": DEAD,
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        await admin.configs.alter(Resource.GROUP, GROUP, changes)
        await Producer(cluster).send(TOPIC, [Outgoing(value=b"bad")])
        async with ShareConsumer(cluster, GROUP, [TOPIC], explicit=True) as queue:
            while not (found := await queue.poll()):
                pass
            queue.reject(*found)
            assert await queue.commit() == []


async def _dead(client: SimulatedHost) -> list[bytes | None]:
    """The dead letters, once a member has asked for records again."""
    async with _cluster(client) as cluster:
        async with ShareConsumer(cluster, GROUP, [TOPIC], explicit=True) as queue:
            for _ in range(5):
                assert await queue.poll() == []
        found = await Fetcher(cluster).fetch({(DEAD, 0): 0})
        return [record.value for record in found[DEAD, 0].records]


def test_what_was_rejected_is_a_dead_letter_though_its_broker_stopped_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = Simulation(1)
    broker, client = simulation.host("broker"), simulation.host("client")
    node = start(broker)
    states: list[int] = []
    write = CoordinatorPersister.write

    def written(
        self: CoordinatorPersister, group_id: str, asked: Sequence[WritePartition]
    ) -> Pending[list[PartitionResult]]:
        states.extend(batch.delivery_state for each in asked for batch in each.state_batches)
        return write(self, group_id, asked)

    with monkeypatch.context() as patched:
        patched.setattr(CoordinatorPersister, "write", written)
        patched.setattr(DeadLetterEffects, "produce", lambda self, node_id, request: Pending())
        # No controller takes the leaderships away before it stops.
        patched.setattr(StopSequence, "_nobody_answers", lambda self: True)
        simulation.run(client, _reject(client))
        simulation.run(broker, node.stop())
    assert states == [RecordState.ARCHIVING]
    broker.restart()
    node = start(broker)
    assert simulation.run(client, _dead(client)) == [b"bad"]
    simulation.run(broker, node.stop())
