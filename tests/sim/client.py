"""A Kafka client for simulated hosts: metadata, leaders, coordinators, time-outs; retries are its
user's.

`Retry` is raised for whatever a real client tries again: a lost connection, no answer in time, a
retriable error code of the request as a whole.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.simulation import SimulatedHost
from kwire.testing.simulation.client import SimulatedClient
from tests.sim.cluster import BOOTSTRAP

TIMEOUT_S = 3.0
PAUSE_S = 0.1


class Retry(Exception):
    """Try again, later or elsewhere."""


class RoutingClient:
    """One client with a connection to each broker it talks to. One request at a time per task."""

    def __init__(self, host: SimulatedHost, name: str) -> None:
        self.host = host
        self.name = name
        self.requests = 0
        self._draw = host.simulation.random.below
        self._connections: dict[tuple[str, int], SimulatedClient] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self._epochs: dict[tuple[str, int], int] = {}  # the newest seen, also of what is forgotten
        self.coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    def note(self, what: str) -> None:
        self.host.simulation.record(self.name, what)

    async def pause(self, seconds: float = PAUSE_S) -> None:
        await asyncio.sleep(seconds * (0.5 + self._draw(1000) / 1000))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # -- one request

    async def ask(
        self, address: tuple[str, int], request: Any, version: int, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """A request to a broker's address; Retry when no answer comes."""
        self.requests += 1
        connection = self._connections.pop(address, None)
        try:
            async with asyncio.timeout(timeout_s):
                if connection is None:
                    connection = await SimulatedClient.connect(*address)
                response = await connection.ask(request, version)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            if connection is not None:
                connection.close()
            raise Retry(f"{address[0]}: {type(error).__name__}") from None
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        if address in self._connections:  # another task has come back with one
            self._connections[address].close()
        self._connections[address] = connection
        return response

    def any_broker(self) -> tuple[str, int]:
        known = list(self._brokers.values()) or BOOTSTRAP
        return known[self._draw(len(known))]

    # -- metadata

    async def refresh(self, topics: list[str]) -> None:
        request = m.MetadataRequest
        address = BOOTSTRAP[self._draw(len(BOOTSTRAP))]
        response = await self.ask(
            address,
            request(
                topics=[request.MetadataRequestTopic(name=topic) for topic in topics],
                allow_auto_topic_creation=False,
            ),
            12,
        )
        if response.brokers:
            self._brokers = {b.node_id: (b.host, b.port) for b in response.brokers}
        for topic in response.topics:
            for partition in topic.partitions:
                key = topic.name, partition.partition_index
                if partition.leader_epoch >= self._epochs.get(key, -1):
                    self._epochs[key] = partition.leader_epoch
                    self._leaders[key] = partition.leader_id, partition.leader_epoch

    async def leader(self, topic: str, index: int) -> tuple[tuple[str, int], int]:
        """Address and epoch of a partition's leader, as far as known; Retry without one."""
        if (topic, index) not in self._leaders:
            await self.refresh([topic])
        node_id, epoch = self._leaders.get((topic, index), (-1, -1))
        address = self._brokers.get(node_id)
        if address is None:
            self._leaders.pop((topic, index), None)
            raise Retry(f"{topic}-{index} has no leader")
        return address, epoch

    def forget_leader(self, topic: str, index: int) -> None:
        self._leaders.pop((topic, index), None)

    async def coordinator(self, kind: int, key: str) -> tuple[str, int]:
        """Where a group's (0) or a transactional id's (1) coordinator is; Retry."""
        known = self.coordinators.get((kind, key))
        if known is not None:
            return known
        response = await self.ask(
            self.any_broker(), m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4
        )
        found = response.coordinators[0]
        if found.error_code:
            raise Retry(ErrorCode(found.error_code).name)
        address = self.coordinators[kind, key] = (found.host, found.port)
        return address

    async def ask_coordinator(
        self, kind: int, key: str, request: Any, version: int, timeout_s: float = TIMEOUT_S
    ) -> Any:
        """A request to a coordinator; it is looked up anew after a failure."""
        address = await self.coordinator(kind, key)
        try:
            return await self.ask(address, request, version, timeout_s)
        except Retry:
            self.forget_coordinator(kind, key)
            raise

    def forget_coordinator(self, kind: int, key: str) -> None:
        self.coordinators.pop((kind, key), None)
