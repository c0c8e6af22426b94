"""Members of a share group that do all that members may, and tell a checker of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.client.share_consumer import Delivered, ShareConsumer
from kwire.testing.simulation import SimulatedHost
from tests.sim.cluster import BOOTSTRAP
from tests.sim.share_checker import Place, ShareChecker

T = TypeVar("T")
ACCEPTED, RELEASED, REJECTED = "accepted", "released", "rejected"
MILDLY = ("accept",) * 6 + ("release",) * 3 + ("reject", "nothing")
"""What becomes of a record."""


def connected(host: SimulatedHost) -> Cluster:
    """The cluster as a client sees it that does not wait long."""
    settings = ConnectionSettings(
        ",".join(f"{name}:{port}" for name, port in BOOTSTRAP),
        connect_timeout_s=2,
        first_timeout_s=3,
        request_timeout_s=5,
        retry_timeout_s=8,
    )
    return Cluster(settings, loop=host.loop, random=host.random, clock=host.clock)


async def asked(host: SimulatedHost, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Do something with a connection to the cluster. Not by `async with`: nothing is to run when
    the host has crashed."""
    cluster = connected(host)
    try:
        result = await work(cluster)
    except ClientError:
        await cluster.close()
        raise
    await cluster.close()
    return result


class Orders:
    """What all members obey: `ends` to end, `drains` to accept all that comes. They work on what
    they get for up to `work_s`, and for longer than `lock_s` at times."""

    def __init__(self, lock_s: float, work_s: float, kinds: tuple[str, ...] = MILDLY) -> None:
        self.lock_s = lock_s
        self.work_s = work_s
        self.kinds = kinds
        self.drains = False
        self.ends = False


class Worker:
    """One member after another on one host; `run` ends when it is told to."""

    def __init__(
        self,
        host: SimulatedHost,
        group: str,
        topic: str,
        checker: ShareChecker,
        orders: Orders,
        *,
        limited: bool,
    ) -> None:
        self.host = host
        self._group = group
        self._topic = topic
        self._checker = checker
        self._orders = orders
        self._limited = limited
        self._below = host.random.below

    async def run(self) -> None:
        """Members, one after the other, until it is told to end."""
        while not self._orders.ends:
            try:
                await asked(self.host, self._consume)
            except ClientError:
                await asyncio.sleep(0.2)

    async def _consume(self, cluster: Cluster) -> None:
        consumer = ShareConsumer(
            cluster,
            self._group,
            [self._topic],
            explicit=True,
            wait_ms=300,
            records_max=(2, 5, 50)[self._below(3)],
            limited=self._limited,
        )
        await consumer.__aenter__()
        try:
            await self._work(consumer)
        except ClientError:
            await consumer.__aexit__(None, None, None)
            raise
        await consumer.__aexit__(None, None, None)

    async def _work(self, consumer: ShareConsumer) -> None:
        orders = self._orders
        while not orders.ends:
            found = await consumer.poll()
            for one in found:
                place = one.partition, one.record.offset
                self._checker.delivered(place, one.delivery_count, one.record.value)
            if not found:
                continue
            if orders.drains:
                await self._say(consumer, found, ("accept",))
                continue
            step = self._below(20)
            if step == 0:
                return  # what it has is given back
            if step == 1:
                await asyncio.sleep(orders.lock_s * (0.8 + self._below(5) / 10))
            else:
                await asyncio.sleep(orders.work_s * self._below(1000) / 1000)
            if 1 < step < 4:
                await consumer.renew(*found[: 1 + self._below(len(found))])
            await self._say(consumer, found, orders.kinds)

    async def _say(
        self, consumer: ShareConsumer, found: list[Delivered], kinds: tuple[str, ...]
    ) -> None:
        """Say something of each record, wait for the answer or let it go with the next fetch."""
        said: dict[Place, tuple[str, int]] = {}
        one_kind = kinds[self._below(len(kinds))]
        is_one = self._below(2) == 0
        for one in found:
            kind = one_kind if is_one else kinds[self._below(len(kinds))]
            place = one.partition, one.record.offset
            if kind == "accept":
                consumer.accept(one)
                said[place] = ACCEPTED, one.delivery_count
            elif kind == "release":
                consumer.release(one)
                said[place] = RELEASED, one.delivery_count
            elif kind == "reject":
                consumer.reject(one)
                said[place] = REJECTED, one.delivery_count
        self._checker.says(said)
        if self._below(4) == 0 and not self._orders.drains:
            return
        failures = await consumer.commit()
        failed = {(each.partition, offset) for each in failures for offset in each.offsets}
        self._checker.answered(said, failed)
