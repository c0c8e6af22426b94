"""The history of a broker whose quotas change, and which dies; its client takes all it can.

Each phase begins with some changes of quotas, some of which a crash may lose; what the broker then
says is set is what it has to hold the client to, by the order of precedence as it stands here:

- within a phase it takes no more than its bound and what the windows allow at once,
- and not much less: nobody waits for more than was used, and nobody forever,
- a throttled connection is answered no earlier than it was told,
- without a quota there is no throttle time,
- a quota that was acknowledged survives.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import SimulatedClient, batch_of
from tests.sim.one_broker import PORT, TOPIC, create_topic, start_broker

Entity = tuple[tuple[str, str | None], ...]
KEY = "producer_byte_rate"
CLIENT_ID, USER = "simulated", "ANONYMOUS"
PHASES = 7
PHASE_S = 30.0
BURST_S = 11.0
REST_S = 25.0
"""After so long nothing is left in the windows."""
REQUEST_BYTES = 700
UNBOUND_REQUESTS = 15
LATENCY_S = 0.1
LEVELS: tuple[Entity, ...] = (
    (("client-id", CLIENT_ID), ("user", USER)),
    (("client-id", None), ("user", USER)),
    (("user", USER),),
    (("client-id", CLIENT_ID), ("user", None)),
    (("client-id", None), ("user", None)),
    (("user", None),),
    (("client-id", CLIENT_ID),),
    (("client-id", None),),
)
"""From the most to the least specific."""
OTHERS: tuple[Entity, ...] = (
    (("user", "other"),),
    (("client-id", "other"),),
    (("client-id", "other"), ("user", USER)),
)
BOUNDS = (100.0, 400.0, 1600.0)


class QuotaHistory:
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.broker = self.simulation.host("broker")
        self.client = self.simulation.host("client")
        self.connection: SimulatedClient | None = None
        self.acknowledged: dict[Entity, float | None] = {}
        self.in_doubt: dict[Entity, float | None] = {}
        self.throttled = 0
        self._muted_until_s = 0.0
        self._others: list[SimulatedClient] = []

    def run(self) -> None:
        try:
            self._run()
        finally:
            self._close()
            for client in self._others:
                client.close()

    def _run(self) -> None:
        draw = self.simulation.random.below
        node = start_broker(self.broker)
        self._on_client(self._begin())
        for _ in range(PHASES):
            for _ in range(1 + draw(3)):
                self._on_client(self._change(draw))
            if draw(3) == 0:
                node = self._crash(draw, loses_change=bool(draw(2)))
            bound = self._on_client(self._bound())
            is_rested = draw(2) == 0
            if is_rested:
                self.simulation.run_for(REST_S)
            self._on_client(self._phase(bound, is_rested))
        self._close()
        self.simulation.run(self.broker, node.stop())

    def _on_client(self, coroutine: Any) -> Any:
        return self.simulation.run(self.client, coroutine)

    async def _begin(self) -> None:
        await create_topic(await self._connected(), 1)

    async def _connected(self) -> SimulatedClient:
        if self.connection is None:
            self.connection = await SimulatedClient.connect("broker", PORT)
        return self.connection

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _crash(self, draw: Any, loses_change: bool) -> Node:
        if loses_change:
            self._on_client(self._send_change(draw))
        self._close()
        self.broker.crash(power_loss=True)
        self.simulation.run_for(1)
        self.broker.restart()
        return start_broker(self.broker)

    # -- quotas

    def _drawn(self, draw: Any) -> tuple[Entity, float | None]:
        known = [entity for entity, bound in self.acknowledged.items() if bound]
        if known and draw(2):
            return known[draw(len(known))], None if draw(2) else BOUNDS[draw(len(BOUNDS))]
        return (LEVELS + OTHERS)[draw(len(LEVELS) + len(OTHERS))], BOUNDS[draw(len(BOUNDS))]

    async def _other(self) -> SimulatedClient:
        """A connection of its own: that of the producer may be muted."""
        client = await SimulatedClient.connect("broker", PORT)
        self._others.append(client)
        return client

    @staticmethod
    def _request(entity: Entity, bound: float | None) -> m.AlterClientQuotasRequest:
        alter = m.AlterClientQuotasRequest
        parts = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        op = alter.OpData(key=KEY, value=bound or 0.0, remove=bound is None)
        return alter(entries=[alter.EntryData(entity=parts, ops=[op])])

    async def _change(self, draw: Any) -> None:
        entity, bound = self._drawn(draw)
        answer = await (await self._other()).ask(self._request(entity, bound), 1)
        assert answer.entries[0].error_code == 0, answer
        self.acknowledged[entity] = bound
        self.in_doubt.pop(entity, None)

    async def _send_change(self, draw: Any) -> None:
        """A change that the broker may die over."""
        entity, bound = self._drawn(draw)
        client = await self._other()
        client.send(client.encoded(self._request(entity, bound), 1))
        self.in_doubt[entity] = bound
        await asyncio.sleep(draw(20) / 1000)

    async def _described(self) -> dict[Entity, float]:
        client = await self._other()
        answer = await client.ask(m.DescribeClientQuotasRequest(components=[]), 1)
        return {
            tuple(sorted((x.entity_type, x.entity_name) for x in entry.entity)): entry.values[
                0
            ].value
            for entry in answer.entries or ()
        }

    async def _bound(self) -> float | None:
        """What holds for the client, once the broker shows all that it acknowledged."""
        for _ in range(300):
            shown = await self._described()
            late = [
                entity
                for entity, bound in self.acknowledged.items()
                if shown.get(entity) != bound
                and not (entity in self.in_doubt and shown.get(entity) == self.in_doubt[entity])
            ]
            if not late:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError(f"acknowledged, but not there: {late}")
        for entity in self.in_doubt:
            self.acknowledged[entity] = shown.get(entity)
        self.in_doubt.clear()
        return next((shown[level] for level in LEVELS if level in shown), None)

    # -- use

    async def _phase(self, bound: float | None, is_rested: bool) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._muted_until_s:
            self._close()  # what it was told before may last longer than the quota
        client = await self._connected()
        begun_s, muted_until_s, used = loop.time(), 0.0, 0
        before = 0.0 if is_rested else 3 * BURST_S * max(BOUNDS)
        while loop.time() < begun_s + PHASE_S and (
            bound or used < UNBOUND_REQUESTS * REQUEST_BYTES
        ):
            wait_s = await self._produce(client)
            now_s = loop.time()
            used += REQUEST_BYTES
            assert now_s > muted_until_s - LATENCY_S, "answered while it was to wait"
            if bound is None:
                assert wait_s == 0, f"a throttle time of {wait_s} without a quota"
                continue
            most_s = (used + before) / bound + 1
            assert wait_s <= most_s, f"{wait_s} s of throttle time for {used} bytes at {bound}"
            self.throttled += wait_s > 0
            self._muted_until_s = muted_until_s = now_s + wait_s
        self.simulation.record("client", f"{used} bytes at {bound}")
        if bound is not None:
            took_s = loop.time() - begun_s
            most = bound * (took_s + BURST_S) + 2 * REQUEST_BYTES
            assert used <= most, f"{used} bytes in {took_s} s at {bound}"

    async def _produce(self, client: SimulatedClient) -> float:
        request = m.ProduceRequest
        data = request.PartitionProduceData(index=0, records=batch_of([b"x" * 560]))
        topic = request.TopicProduceData(name=TOPIC, partition_data=[data])
        limit_s = 3 * BURST_S * max(BOUNDS) / min(BOUNDS) + PHASE_S
        try:
            async with asyncio.timeout(limit_s):
                answer = await client.ask(request(acks=-1, timeout_ms=5000, topic_data=[topic]), 9)
        except TimeoutError:
            raise AssertionError(f"no answer within {limit_s} s") from None
        assert answer.responses[0].partition_responses[0].error_code == 0
        return answer.throttle_time_ms / 1000
