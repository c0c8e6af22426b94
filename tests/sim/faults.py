"""What goes wrong in a history: which faults, how often, how long, drawn from its seed.

A `Plan` is drawn once per history, so that some histories have one kind of fault only and others
all of them. What Kafka's promises assume is kept: one machine at a time loses what it had not
synced, and the next one only when everything is in sync again (`min.insync.replicas` copies stay).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from kwire.clock import SeededRandom
from tests.sim import constructed, partition_rows, scenarios
from tests.sim.checkers import Checkers
from tests.sim.cluster import IDS, Cluster
from tests.sim.offsets import OffsetLedger

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
    "shortage",
    "clock jump",
    "frozen process",
    "stop in order",
    "rolling restart",
    "election storm",
    "brokers cut off",
    "changing leaders",
    "quorum change",
)
SMALL_LOGS = {
    "log.roll.ms": "1500",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
QUICK_ELECTIONS = {
    "controller.quorum.fetch.timeout.ms": "700",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "200",
}
ROW_KINDS = {**constructed.ROW_KINDS, **partition_rows.ROW_KINDS}


@dataclass
class Plan:
    """The kinds of faults of one history, and the settings of its nodes that vary.

    With `flushed` every record is flushed before it is acknowledged, so all machines may lose
    power. `groups` are the protocols of the consumer groups there are. `extras` are things that
    clients do besides: "repeats" (producers send their last five batches again), "positions"
    (readers ask where a partition ends), "zombies" (`zombies.py`).
    """

    kinds: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    pause_s: tuple[float, float] = PAUSE_S
    flushed: bool = False
    groups: tuple[str, ...] = ("classic", "consumer")
    extras: tuple[str, ...] = ()

    @classmethod
    def drawn(cls, random: SeededRandom) -> Plan:
        """Half of the plans have one to three kinds, the others about half of them all."""
        settings: dict[str, str] = {}
        if random.below(2):
            kinds = tuple(KINDS[random.below(len(KINDS))] for _ in range(1 + random.below(3)))
        else:
            kinds = tuple(kind for kind in KINDS if random.below(2)) or ("kill",)
        flushed = random.below(4) == 0
        if flushed:
            settings["log.flush.interval.messages"] = "1"
            kinds += ("blackout",)
        if random.below(3) == 0:
            settings.update(SMALL_LOGS)
        if random.below(3) == 0:
            settings.update(QUICK_ELECTIONS)
        groups = (("classic",), ("consumer",), ("classic", "consumer"), ())[random.below(4)]
        return cls(tuple(dict.fromkeys(kinds)), settings, flushed=flushed, groups=groups)


class Faults:
    """Makes them happen. `counts` says how many of each kind there were."""

    def __init__(self, cluster: Cluster, plan: Plan, checkers: Checkers) -> None:
        self.cluster = cluster
        self.plan = plan
        self.checkers = checkers
        self.counts: dict[str, int] = {}
        self.network = cluster.simulation.network
        self.below = cluster.simulation.random.below
        self.uniform = cluster.simulation.uniform
        self.row_is_under_way = False
        self.ledgers: dict[str, OffsetLedger] = {}  # of groups that rows commit offsets of
        self._simulation = cluster.simulation
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
            "shortage": lambda: scenarios.shortage(self),
            "clock jump": self._clock_jump,
            "frozen process": lambda: self.frozen(self.node()),
            "election storm": lambda: scenarios.election_storm(self),
            "brokers cut off": lambda: scenarios.brokers_cut_off(self),
            "changing leaders": lambda: scenarios.changing_leaders(self),
            "quorum change": lambda: scenarios.quorum_change(self),
            "blackout": lambda: scenarios.blackout(self),
            "stop in order": self._stop,
            "rolling restart": self._rolling_restart,
        }
        for kind, row in ROW_KINDS.items():
            self._acts[kind] = partial(row, self)

    async def run(self, until_s: float) -> None:
        """Faults until that time, then everything heals and every node runs."""
        loop = asyncio.get_running_loop()
        under_way: list[asyncio.Task[None]] = []
        while self._simulation.now < until_s and self.plan.kinds:
            await asyncio.sleep(self.uniform(*self.plan.pause_s))
            kind = self.plan.kinds[self.below(len(self.plan.kinds))]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._simulation.record("world", kind)
            under_way.append(loop.create_task(self._act(kind)))
            under_way = [task for task in under_way if not task.done()]
        for task in under_way:
            await task
        self.heal()
        for node_id in IDS:
            self._start(node_id)
        await self.let_all_vote()

    async def let_all_vote(self) -> None:
        """Every node is a voter again, as soon as there is a quorum to ask."""
        if "quorum change" not in self.plan.kinds:
            return
        for node_id in IDS:
            for _ in range(5):
                if await scenarios.set_voter(self, node_id, is_voter=True):
                    break

    async def _act(self, kind: str) -> None:
        await self._acts[kind]()

    def heal(self) -> None:
        """No fault is left but the nodes that are down."""
        self.network.heal()
        conditions = self.network.conditions
        conditions.slow_per_million = conditions.reset_per_million = 0
        for host in self.cluster.hosts.values():
            if host.up and host.loop.held is not None:
                host.thaw()
            host.disk_delay_s = 0.0
            host.disk.capacity_bytes = None
            host.disk.fault = None

    # -- helpers

    @property
    def now(self) -> float:
        return self._simulation.now

    def node(self) -> int:
        return IDS[self.below(len(IDS))]

    def may_lose(self, node_id: int) -> bool:
        """Whether this machine may lose what it had not synced: since everything was in sync no
        other one has, nor has ended without order, which to the controller is the same."""
        return self.may_kill(node_id) and all(known == node_id for known in self.cluster.killed)

    def may_kill(self, node_id: int) -> bool:
        """Whether this process may end without order: no other machine has lost anything."""
        cluster = self.cluster
        if self.plan.flushed or (cluster.killed and cluster.is_in_sync()):
            cluster.unclean.clear()
            cluster.killed.clear()
        return all(known == node_id for known in cluster.unclean)

    def may_stop(self, node_id: int) -> bool:
        """Whether this process runs and may be told to stop: before it has heard of its
        registration the controller takes that for an end without order, and so it does where
        nothing could be written of the order."""
        if not self.cluster.is_up(node_id):
            return False
        node, disk = self.cluster.nodes[node_id], self.cluster.hosts[node_id].disk
        is_told = self.cluster.is_registered(node)
        can_note_it = disk.fault is None and disk.capacity_bytes is None
        return (is_told and can_note_it) or self.may_kill(node_id)

    async def frozen(self, node_id: int, low: float = 0.3, high: float = 6.0) -> None:
        """A process that does nothing for a while and knows nothing of it."""
        host, life = self.cluster.hosts[node_id], self.cluster.lives[node_id]
        if self.cluster.is_up(node_id) and host.loop.held is None:
            host.freeze()
            await asyncio.sleep(self.uniform(low, high))
            if self.cluster.lives[node_id] == life and host.up:
                host.thaw()

    def _start(self, node_id: int) -> None:
        if not self.cluster.is_up(node_id):
            self.cluster.start(node_id)

    async def down(self, node_id: int, low: float = 0.2, high: float = 6.0) -> None:
        life = self.cluster.lives[node_id]
        await asyncio.sleep(self.uniform(low, high))
        if self.cluster.lives[node_id] == life:
            self._start(node_id)

    # -- the kinds

    async def _kill(self) -> None:
        node_id = self.node()
        if self.cluster.is_up(node_id) and self.may_kill(node_id):
            self.cluster.kill(node_id)
            await self.down(node_id)

    async def _power_loss(self) -> None:
        node_id = self.node()
        if self.cluster.is_up(node_id) and self.may_lose(node_id):
            self.cluster.kill(node_id, power_loss=True)
            await self.down(node_id)

    async def _one_way(self) -> None:
        source = self.node()
        ends = [f"n{i}" for i in IDS if i != source] + list(CLIENTS)
        destination = ends[self.below(len(ends))]
        network = self.network
        pair = (f"n{source}", destination)
        if self.below(2):
            pair = pair[::-1]
        network.block(*pair)
        await asyncio.sleep(self.uniform(0.5, 8.0))
        network.heal(*pair)

    async def _partition(self) -> None:
        one = self.node()
        other = [i for i in IDS if i != one][self.below(2)]
        network = self.network
        for pair in ((one, other), (other, one)):
            network.block(f"n{pair[0]}", f"n{pair[1]}")
        await asyncio.sleep(self.uniform(0.5, 8.0))
        for pair in ((one, other), (other, one)):
            network.heal(f"n{pair[0]}", f"n{pair[1]}")

    async def _isolation(self) -> None:
        """A node reaches no other node; clients may still reach it."""
        node_id = self.node()
        network = self.network
        others = [f"n{i}" for i in IDS if i != node_id]
        if self.below(2):
            others += CLIENTS
        for other in others:
            network.block(f"n{node_id}", other)
            network.block(other, f"n{node_id}")
        await asyncio.sleep(self.uniform(0.5, 9.0))
        for other in others:
            network.heal(f"n{node_id}", other)
            network.heal(other, f"n{node_id}")

    async def _resets(self) -> None:
        conditions = self.network.conditions
        conditions.reset_per_million = 30_000
        await asyncio.sleep(self.uniform(0.5, 4.0))
        conditions.reset_per_million = 0

    async def _slow_network(self) -> None:
        conditions = self.network.conditions
        conditions.slow_per_million = 200_000
        await asyncio.sleep(self.uniform(0.5, 5.0))
        conditions.slow_per_million = 0

    async def _slow_disk(self) -> None:
        host = self.cluster.hosts[self.node()]
        host.disk_delay_s = self.uniform(0.01, 1.0)
        await asyncio.sleep(self.uniform(0.5, 6.0))
        host.disk_delay_s = 0.0

    async def _full_disk(self) -> None:
        node_id = self.node()
        if not self.may_kill(node_id):
            return
        self.cluster.killed[node_id] = True  # it may well give up
        disk = self.cluster.hosts[node_id].disk
        disk.capacity_bytes = disk.used_bytes() + self.below(3000)
        await asyncio.sleep(self.uniform(0.5, 5.0))
        disk.capacity_bytes = None

    async def _clock_jump(self) -> None:
        host = self.cluster.hosts[self.node()]
        host.clock_skew_ms += self.below(20_000) - 10_000

    async def _stop(self) -> None:
        node_id = self.node()
        if self.may_stop(node_id):
            await self.cluster.stop(node_id)
            await self.down(node_id)

    async def _rolling_restart(self) -> None:
        for node_id in IDS:
            if self.may_stop(node_id):
                await self.cluster.stop(node_id)
                self._start(node_id)
                await asyncio.sleep(self.uniform(0.5, 3.0))
