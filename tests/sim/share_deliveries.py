"""Share groups under failures: consumers that accept, release, reject, go and hold too long, on a
simulated broker that is killed under them, and a checker of what they get.

What is checked, of every record that the log keeps: it is delivered until it is acknowledged; never
again once its acknowledgement was answered; its delivery count goes up (but over a kill), and not
beyond the limit; what ends without an acknowledgement was delivered as often as the limit says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.configs import Resource
from kwire.client.errors import ClientError
from kwire.client.producer import Outgoing, Producer
from kwire.client.settings import ConnectionSettings
from kwire.client.share_consumer import Delivered, ShareConsumer
from kwire.testing.simulation import SimulatedHost, Simulation
from tests.sim.application import PORT, SETTINGS, start
from tests.sim.model import Violation

TOPIC, GROUP = "jobs", "workers"
PARTITIONS = 2
RECORDS = 60
WORKERS = 3
LIMIT = 4
LOCK_S = 3
KILLS = 2
QUIET_S = 60
GROUP_CONFIGS: Mapping[str, str] = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": str(LOCK_S * 1000),
    "share.delivery.count.limit": str(LIMIT),
}
BROKER: Mapping[str, str] = {
    **SETTINGS,
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
}
Place = tuple[int, int]
"""(partition, offset)."""


class Checker:
    """What has been seen of each record."""

    def __init__(self) -> None:
        self.sent: set[Place] = set()
        self.counts: dict[Place, int] = {}
        self.leads: dict[Place, int] = {}
        self.kills = 0
        self.ended: dict[Place, str] = {}
        self.unsure: set[Place] = set()

    def delivered(self, one: Delivered) -> None:
        place = one.partition, one.record.offset
        if place in self.ended:
            raise Violation(f"{place} comes again although it was {self.ended[place]}")
        if not 1 <= one.delivery_count <= LIMIT:
            raise Violation(f"{place} is delivered for the {one.delivery_count}th time")
        before = self.counts.get(place, 0)
        if self.leads.get(place) == self.kills and one.delivery_count <= before:
            raise Violation(f"{place} is delivered for the {one.delivery_count}th time again")
        self.leads[place] = self.kills
        self.counts[place] = max(one.delivery_count, before)

    def answered(self, places: dict[Place, str], failed: set[Place]) -> None:
        """Acknowledgements were answered, but for those that failed."""
        for place, what in places.items():
            if place in failed:
                self.unsure.add(place)
            elif what != "released":
                self.ended[place] = what

    def check_end(self) -> None:
        """Nothing comes any more."""
        for place in sorted(self.sent):
            if place not in self.counts:
                raise Violation(f"{place} was never delivered")
            is_exhausted = self.counts[place] == LIMIT
            if not (place in self.ended or place in self.unsure or is_exhausted):
                raise Violation(f"{place} comes no more after {self.counts[place]} deliveries")


class ShareHistory:
    """One seed, one history; `run` raises Violation."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.broker = self.simulation.host("broker")
        self.clients = [self.simulation.host(f"client-{at}") for at in range(WORKERS + 1)]
        self.checker = Checker()
        self.is_over = False
        self.last_s = 0.0

    def run(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        try:
            self._run(tasks)
        finally:
            for task in tasks:
                task.get_loop().call_soon(task.cancel)
            self.simulation.run_for(10)

    def _run(self, tasks: list[asyncio.Task[None]]) -> None:
        simulation = self.simulation
        start(self.broker, BROKER)
        producing = self.clients[0].loop.create_task(self._produce(self.clients[0]))
        workers = [
            client.loop.create_task(self._work(client, at))
            for at, client in enumerate(self.clients[1:])
        ]
        tasks += [producing, *workers]
        for _ in range(KILLS):
            simulation.run_for(10 + simulation.random.below(10))
            self.broker.crash(power_loss=False)
            self.checker.kills += 1
            simulation.run_for(1)
            self.broker.restart()
            node = start(self.broker, BROKER)

        async def until_quiet() -> None:
            await producing
            self.last_s = self.clients[0].loop.time()
            while self.clients[0].loop.time() - self.last_s < QUIET_S:
                await asyncio.sleep(1)
                for worker in workers:
                    if worker.done():
                        worker.result()
            self.is_over = True
            while not all(worker.done() for worker in workers):
                await asyncio.sleep(1)
            for worker in workers:
                worker.result()

        simulation.run(self.clients[0], until_quiet())
        self.checker.check_end()
        simulation.run(self.broker, node.stop())

    def _cluster(self, client: SimulatedHost) -> Cluster:
        settings = ConnectionSettings(
            f"broker:{PORT}", connect_timeout_s=2, first_timeout_s=5, request_timeout_s=10
        )
        return Cluster(settings, loop=client.loop, random=client.random, clock=client.clock)

    async def _produce(self, client: SimulatedHost) -> None:
        async with self._cluster(client) as cluster:
            admin = Admin(cluster)
            await admin.topics.create(TOPIC, partitions=PARTITIONS)
            await admin.configs.alter(Resource.GROUP, GROUP, GROUP_CONFIGS)
            producer = Producer(cluster)
            for number in range(RECORDS // 3):
                values = [Outgoing(value=b"%d-%d" % (number, at)) for at in range(3)]
                for kept in await producer.send(TOPIC, values):
                    self.checker.sent.add((kept.partition, kept.offset))
                await asyncio.sleep(1)

    async def _work(self, client: SimulatedHost, at: int) -> None:
        while not self.is_over:
            try:
                await self._consume(client, at)
            except ClientError:
                await asyncio.sleep(1)

    async def _consume(self, client: SimulatedHost, at: int) -> None:
        random = client.random
        async with (
            self._cluster(client) as cluster,
            ShareConsumer(
                cluster, GROUP, [TOPIC], explicit=True, records_max=5, limited=at % 2 == 0
            ) as consumer,
        ):
            while not self.is_over:
                delivered = await consumer.poll()
                for one in delivered:
                    self.last_s = client.loop.time()
                    self.checker.delivered(one)
                if delivered and random.below(8) == 0:
                    await asyncio.sleep(LOCK_S + 1)  # too long
                if random.below(12) == 0:
                    return  # and come again
                places: dict[Place, str] = {}
                for one in delivered:
                    drawn = random.below(10)
                    if drawn < 6:
                        consumer.accept(one)
                        places[one.partition, one.record.offset] = "accepted"
                    elif drawn < 8:
                        consumer.release(one)
                        places[one.partition, one.record.offset] = "released"
                    elif drawn < 9:
                        consumer.reject(one)
                        places[one.partition, one.record.offset] = "rejected"
                failed = {
                    (each.partition, offset)
                    for each in await consumer.commit()
                    for offset in each.offsets
                }
                self.checker.answered(places, failed)
