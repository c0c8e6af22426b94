"""What goes wrong in a history: which faults, how often, how long, drawn from its seed.

A `Plan` is drawn once per history, so that some histories have one kind of fault only and others
all of them. What Kafka's promises assume is kept: one machine at a time loses what it had not
synced, and the next one only when everything is in sync again (`min.insync.replicas` copies stay).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kwire.clock import SeededRandom
from tests.sim.cluster import IDS, Cluster

PAUSE_S = (0.3, 4.0)
CLIENTS = ("clients", "others")
KINDS = (
    "kill",
    "power loss",
    "one-way partition",
    "partition",
    "isolation",
    "resets",
    "slow network",
    "slow disk",
    "full disk",
    "clock jump",
    "stop in order",
    "rolling restart",
)


@dataclass
class Plan:
    """The kinds of faults of one history, and the settings of its nodes that vary."""

    kinds: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    pause_s: tuple[float, float] = PAUSE_S

    @classmethod
    def drawn(cls, random: SeededRandom) -> Plan:
        kinds = tuple(kind for kind in KINDS if random.below(3) > 0)
        settings = {}
        if random.below(4) == 0:
            settings["metadata.log.max.record.bytes.between.snapshots"] = "4000"
        if random.below(4) == 0:
            settings["log.flush.interval.messages"] = "1"
        return cls(kinds or ("kill",), settings)


class Faults:
    """Makes them happen. `counts` says how many of each kind there were."""

    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self.cluster = cluster
        self.plan = plan
        self.counts: dict[str, int] = {}
        self._simulation = cluster.simulation
        self._random = cluster.simulation.random
        self._acts: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "power loss": self._power_loss,
            "one-way partition": self._one_way,
            "partition": self._partition,
            "isolation": self._isolation,
            "resets": self._resets,
            "slow network": self._slow_network,
            "slow disk": self._slow_disk,
            "full disk": self._full_disk,
            "clock jump": self._clock_jump,
            "stop in order": self._stop,
            "rolling restart": self._rolling_restart,
        }

    async def run(self, until_s: float) -> None:
        """Faults until that time, then everything heals and every node runs."""
        loop = asyncio.get_running_loop()
        under_way: list[asyncio.Task[None]] = []
        while self._simulation.now < until_s and self.plan.kinds:
            await asyncio.sleep(self._uniform(*self.plan.pause_s))
            kind = self.plan.kinds[self._random.below(len(self.plan.kinds))]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._simulation.record("world", kind)
            under_way.append(loop.create_task(self._act(kind)))
            under_way = [task for task in under_way if not task.done()]
        for task in under_way:
            await task
        self.heal()
        for node_id in IDS:
            self._start(node_id)

    async def _act(self, kind: str) -> None:
        await self._acts[kind]()

    def heal(self) -> None:
        """No fault is left but the nodes that are down."""
        self._simulation.network.heal()
        conditions = self._simulation.network.conditions
        conditions.slow_per_million = conditions.reset_per_million = 0
        for host in self.cluster.hosts.values():
            host.disk_delay_s = 0.0
            host.disk.capacity_bytes = None

    # -- helpers

    def _uniform(self, low: float, high: float) -> float:
        return self._simulation.uniform(low, high)

    def _node(self) -> int:
        return IDS[self._random.below(len(IDS))]

    def _start(self, node_id: int) -> None:
        if not self.cluster.is_up(node_id):
            self.cluster.start(node_id)

    async def _down(self, node_id: int, low: float = 0.2, high: float = 6.0) -> None:
        life = self.cluster.lives[node_id]
        await asyncio.sleep(self._uniform(low, high))
        if self.cluster.lives[node_id] == life:
            self._start(node_id)

    # -- the kinds

    async def _kill(self) -> None:
        node_id = self._node()
        if self.cluster.is_up(node_id):
            self.cluster.kill(node_id)
            await self._down(node_id)

    async def _power_loss(self) -> None:
        node_id = self._node()
        if any(self.cluster.unclean.values()) and self.cluster.is_in_sync():
            self.cluster.unclean.clear()
        others = [i for i in self.cluster.unclean if i != node_id]
        if self.cluster.is_up(node_id) and not others and self.cluster.is_in_sync():
            self.cluster.kill(node_id, power_loss=True)
            await self._down(node_id)

    async def _one_way(self) -> None:
        source = self._node()
        ends = [f"n{i}" for i in IDS if i != source] + list(CLIENTS)
        destination = ends[self._random.below(len(ends))]
        network = self._simulation.network
        pair = (f"n{source}", destination)
        if self._random.below(2):
            pair = pair[::-1]
        network.block(*pair)
        await asyncio.sleep(self._uniform(0.5, 8.0))
        network.heal(*pair)

    async def _partition(self) -> None:
        one = self._node()
        other = [i for i in IDS if i != one][self._random.below(2)]
        network = self._simulation.network
        for pair in ((one, other), (other, one)):
            network.block(f"n{pair[0]}", f"n{pair[1]}")
        await asyncio.sleep(self._uniform(0.5, 8.0))
        for pair in ((one, other), (other, one)):
            network.heal(f"n{pair[0]}", f"n{pair[1]}")

    async def _isolation(self) -> None:
        """A node reaches no other node; clients may still reach it."""
        node_id = self._node()
        network = self._simulation.network
        others = [f"n{i}" for i in IDS if i != node_id]
        if self._random.below(2):
            others += CLIENTS
        for other in others:
            network.block(f"n{node_id}", other)
            network.block(other, f"n{node_id}")
        await asyncio.sleep(self._uniform(0.5, 9.0))
        for other in others:
            network.heal(f"n{node_id}", other)
            network.heal(other, f"n{node_id}")

    async def _resets(self) -> None:
        conditions = self._simulation.network.conditions
        conditions.reset_per_million = 30_000
        await asyncio.sleep(self._uniform(0.5, 4.0))
        conditions.reset_per_million = 0

    async def _slow_network(self) -> None:
        conditions = self._simulation.network.conditions
        conditions.slow_per_million = 200_000
        await asyncio.sleep(self._uniform(0.5, 5.0))
        conditions.slow_per_million = 0

    async def _slow_disk(self) -> None:
        host = self.cluster.hosts[self._node()]
        host.disk_delay_s = self._uniform(0.01, 1.0)
        await asyncio.sleep(self._uniform(0.5, 6.0))
        host.disk_delay_s = 0.0

    async def _full_disk(self) -> None:
        node_id = self._node()
        disk = self.cluster.hosts[node_id].disk
        disk.capacity_bytes = disk.used_bytes() + self._random.below(3000)
        await asyncio.sleep(self._uniform(0.5, 5.0))
        disk.capacity_bytes = None

    async def _clock_jump(self) -> None:
        host = self.cluster.hosts[self._node()]
        host.clock_skew_ms += self._random.below(20_000) - 10_000

    async def _stop(self) -> None:
        node_id = self._node()
        if self.cluster.is_up(node_id):
            await self.cluster.stop(node_id)
            await self._down(node_id)

    async def _rolling_restart(self) -> None:
        for node_id in IDS:
            if self.cluster.is_up(node_id):
                await self.cluster.stop(node_id)
                self._start(node_id)
                await asyncio.sleep(self._uniform(0.5, 3.0))
