"""A node ends that leads many partitions: the others take them over in many turns of their loops,
and follow each other in all of them soon, without asking for all of them again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from kwire.node.node import Node
from kwire.node.replication import Replication
from kwire.protocol import messages as m
from kwire.replica import fetcher
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import SimulatedClient, batch_of
from kwire.testing.simulation.nodes import BROKER_PORT, SimulatedNodes

IDS = (1, 2, 3)
TOPIC, PARTITIONS = "many", 60
TURN_S = 0.004
STARTED_S, IN_SYNC_S = 60.0, 60.0
SERVED_S = 5.0
"""From the end of a node on, where a fetch that nothing ends waits far longer."""
FETCH_ENDS_MAX = 5
"""Of a node, in the 60 turns of 4 ms of a change."""
SETTINGS = {
    "replica.fetch.wait.max.ms": "20000",
    "replica.socket.timeout.ms": "30000",
    "broker.session.timeout.ms": "60000",
    "log.retention.ms": "-1",  # records are of 1970
}


class Late:
    """A loop on which what follows a change has turns that take a while."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop

    def call_soon(self, callback: Callable[..., None], *of: object) -> object:
        return self._loop.call_later(TURN_S, callback, *of)


class Failover:
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.nodes = SimulatedNodes(self.simulation, IDS, SETTINGS, self._attach)
        self.nodes.format()
        self.client = self.simulation.host("client")
        self.fetches_ended: Counter[int] = Counter()
        """By node: fetches that waited and were ended, whose session begins anew."""

    def _attach(self, node: Node) -> None:
        node.replicas.slice_cost = 1
        node.publishing._loop = Late(node.publishing._loop)  # type: ignore[assignment]

    def run(self, *, in_order: bool) -> None:
        """One node ends, and each partition takes a record on whoever leads it then."""
        try:
            self._run(in_order)
        finally:
            for host in self.simulation.hosts.values():
                if host.up:
                    host.loop.kill()

    def _run(self, in_order: bool) -> None:
        nodes = self.nodes
        for node_id in IDS:
            nodes.start(node_id)
        self._until(nodes.is_in_sync, STARTED_S)
        self.simulation.run(self.client, self._create())
        self._until(self._is_whole, IN_SYNC_S)
        self.simulation.run_for(1)
        controller = nodes.active_controller()
        assert controller is not None
        victim = next(i for i in IDS if i != controller.broker_id)
        reconnect = Replication.reconnect

        def counted(replication: Replication, node_id: int) -> None:
            self.fetches_ended[replication.broker_id] += 1
            reconnect(replication, node_id)

        with patch.object(Replication, "reconnect", counted):
            if in_order:
                self.simulation.run(self.simulation.host("world"), nodes.stop(victim))
            else:
                nodes.kill(victim)
            self._until(lambda: self._is_led_without(victim), SERVED_S)
            self.simulation.run(self.client, self._write(victim), limit_s=SERVED_S)

    def _until(self, condition: Callable[[], bool], limit_s: float) -> None:
        self.simulation.run_until(condition, limit_s=limit_s)

    def _leaders(self, node: Node) -> list[int]:
        topic = node.image.topics.by_name.get(TOPIC)
        return [] if topic is None else [x.leader for x in topic.partitions.values()]

    def _is_whole(self) -> bool:
        nodes = self.nodes.nodes.values()
        return self.nodes.is_in_sync() and all(
            len(self._leaders(node)) == PARTITIONS and len(list(node.replicas)) >= PARTITIONS
            for node in nodes
        )

    def _is_led_without(self, victim: int) -> bool:
        lives = [i for i in IDS if i != victim]
        return all(
            self.nodes.is_up(i) and set(self._leaders(self.nodes.nodes[i])) == set(lives)
            for i in lives
        )

    async def _ask(self, node_id: int, request: Any, version: int) -> Any:
        client = await SimulatedClient.connect(f"n{node_id}", BROKER_PORT)
        try:
            return await client.ask(request, version)
        finally:
            client.close()

    async def _create(self) -> None:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=3)
        answer = await self._ask(1, shape(topics=[topic], timeout_ms=30_000), 5)
        assert not answer.topics[0].error_code, answer

    async def _write(self, victim: int) -> None:
        """Until each partition has taken a record that all in sync have."""
        left = set(range(PARTITIONS))
        while left:
            for node_id in IDS:
                if node_id != victim:
                    leaders = self._leaders(self.nodes.nodes[node_id])
                    mine = sorted(i for i in left if leaders[i] == node_id)
                    if mine:
                        left.difference_update(await self._written(node_id, mine))
            await asyncio.sleep(0.02)

    async def _written(self, node_id: int, indexes: list[int]) -> list[int]:
        shape = m.ProduceRequest
        data = [
            shape.PartitionProduceData(index=index, records=batch_of([b"x"])) for index in indexes
        ]
        topic = shape.TopicProduceData(name=TOPIC, partition_data=data)
        answer = await self._ask(node_id, shape(acks=-1, timeout_ms=60_000, topic_data=[topic]), 9)
        found = answer.responses[0].partition_responses
        return [each.index for each in found if not each.error_code]


@pytest.mark.parametrize("in_order", [False, True], ids=["killed", "stopped"])
def test_the_others_serve_all_soon_and_ask_for_all_of_them_seldom(in_order: bool) -> None:
    failover = Failover(1)
    failover.run(in_order=in_order)
    assert max(failover.fetches_ended.values()) <= FETCH_ENDS_MAX, failover.fetches_ended


def test_fetches_that_end_at_each_turn_are_found() -> None:
    with patch.object(fetcher, "INTERRUPT_AFTER_MS_MAX", fetcher.INTERRUPT_AFTER_MS):
        failover = Failover(1)
        failover.run(in_order=False)
    assert max(failover.fetches_ended.values()) > FETCH_ENDS_MAX


def test_fetches_that_do_not_end_are_found() -> None:
    """New partitions would wait for what happens to others."""
    with (
        patch.object(fetcher.LeaderFetcher, "_interrupt", lambda self: None),
        pytest.raises(Exception, match="did not hold within"),
    ):
        Failover(1).run(in_order=False)
