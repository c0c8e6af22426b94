"""What a drawn fault does when its time has come (`plans.py` draws them).

Each act names what it hits in the history, and mends what it broke when its length is over. What
Kafka promises is kept by what it assumes: as long as not everything is in sync since a broker
ended without order, no other one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from kwire.testing.simulation.leader_moves import Led
from kwire.testing.simulation.links import Cut
from kwire.testing.simulation.nodes import SimulatedNodes
from kwire.testing.simulation.plans import Fault
from kwire.testing.simulation.processes import Process, resolve

BROKER_CLOCK_MS, PROCESS_CLOCK_MS = 5_000, 120_000
RESETS_PER_MILLION, SLOW_PER_MILLION = 20_000, 150_000
STEP_LIMIT_S = 30.0  # a step that does not come does not hold a fault back for longer
ROLES = ("any", "any", "leader", "leader", "coordinator", "transaction coordinator", "controller")


class Run(Protocol):
    """What faults need of the run (`cluster.py`)."""

    @property
    def nodes(self) -> SimulatedNodes: ...

    @property
    def processes(self) -> Mapping[str, Process]: ...

    @property
    def client_name(self) -> str: ...

    def note(self, what: str, who: str) -> None: ...

    def leaders(self, topic: str | None = None) -> Sequence[int]: ...

    def led(self) -> Sequence[Led]: ...

    async def move_leader(self, led: Led, to: int) -> None: ...


class Faults:
    """Lets the faults of a plan happen."""

    def __init__(self, run: Run, plan: Sequence[Fault]) -> None:
        self.plan = plan
        self._run = run
        self._nodes = run.nodes
        self._network = run.nodes.simulation.network
        self._under_way: list[asyncio.Task[None]] = []
        self._acts: dict[str, Callable[[Fault], Awaitable[None]]] = {
            "broker killed": self._broker_killed,
            "broker loses power": self._broker_loses_power,
            "broker stopped": self._broker_stopped,
            "brokers restarted in turn": self._restarted_in_turn,
            "broker paused": self._broker_paused,
            "broker isolated": self._isolated,
            "brokers parted": self._parted,
            "leader moved": self._leader_moved,
            "disk slow": self._disk_slow,
            "disk full": self._disk_full,
            "broker's clock wrong": self._clock_wrong,
            "client cut off": self._client_cut_off,
            "replies delayed": self._replies_delayed,
            "replies lost": self._replies_lost,
            "reply cut": self._reply_cut,
            "request cut": self._request_cut,
            "link slow": self._link_slow,
            "network slow": self._network_slow,
            "connections reset": self._connections_reset,
            "process killed": self._process_killed,
            "process loses power": self._process_killed,
            "process paused": self._process_paused,
            "process stopped": self._process_stopped,
            "process's clock wrong": self._process_clock,
        }

    async def run(self, began_s: float, until_s: float) -> None:
        """The plan's faults, at seconds after `began_s`; until `until_s` all are over."""
        loop = asyncio.get_running_loop()
        for fault in self.plan:
            await asyncio.sleep(max(0.0, began_s + fault.at_s - loop.time()))
            self._under_way = [task for task in self._under_way if not task.done()]
            self._under_way.append(loop.create_task(self._happens(fault)))
        await asyncio.sleep(max(0.0, began_s + until_s - loop.time()))
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _happens(self, fault: Fault) -> None:
        await self._acts[fault.kind](fault)

    # -- whom

    def _broker(self, fault: Fault, which: int = 0) -> int:
        """A broker by the role that the fault draws."""
        role = ROLES[fault.pick(len(ROLES), which)]
        drawn = fault.choices[which] // len(ROLES)
        ids: Sequence[int] = ()
        if role == "leader":
            ids = self._run.leaders()
        elif role == "coordinator":
            ids = self._run.leaders("__consumer_offsets")
        elif role == "transaction coordinator":
            ids = self._run.leaders("__transaction_state")
        elif role == "controller":
            controller = self._nodes.active_controller()
            ids = () if controller is None else (controller.config.node_id,)
        ids = ids or self._nodes.ids
        return ids[drawn % len(ids)]

    def _process(self, fault: Fault) -> Process | None:
        running = [one for one in self._run.processes.values() if one.is_running]
        return running[fault.pick(len(running), 1)] if running else None

    def _client(self, fault: Fault) -> str:
        """A process, or where there are none the test itself."""
        process = self._process(fault)
        return self._run.client_name if process is None else process.name

    def _may_end(self, node_id: int, *, power_loss: bool = False) -> bool:
        """Whether this broker may end without order. A stop in order may end so too: it is killed
        when it takes too long, as by whoever runs services."""
        nodes = self._nodes
        if not nodes.is_up(node_id):
            return False
        if nodes.killed and nodes.is_in_sync():
            nodes.unclean.clear()
            nodes.killed.clear()
        known = {**nodes.killed, **nodes.being_stopped()} if power_loss else nodes.unclean
        return all(other == node_id for other in known)

    def _note(self, fault: Fault, what: str) -> None:
        self._run.note(f"fault {fault.number}: {what}", "world")

    async def _step(self, process: Process, fault: Fault) -> None:
        """Until the process has done as many steps as the fault draws."""
        if fault.step and not process.is_paused:
            loop = asyncio.get_running_loop()
            reached: asyncio.Future[None] = loop.create_future()
            process.loop.arm(fault.step, partial(resolve, reached))
            await asyncio.wait([reached], timeout=STEP_LIMIT_S)

    # -- brokers

    async def _down(self, node_id: int, fault: Fault) -> None:
        life = self._nodes.lives[node_id]
        await asyncio.sleep(fault.length_s)
        if self._nodes.lives[node_id] == life and not self._nodes.is_up(node_id):
            self._nodes.start(node_id)

    async def _broker_killed(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        if self._may_end(node_id):
            self._note(fault, f"n{node_id} is killed for {fault.length_s} s")
            self._nodes.kill(node_id)
            await self._down(node_id, fault)

    async def _broker_loses_power(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        if self._may_end(node_id, power_loss=True):
            self._note(fault, f"n{node_id} loses power for {fault.length_s} s")
            self._nodes.kill(node_id, power_loss=True)
            await self._down(node_id, fault)

    async def _broker_stopped(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        if self._may_end(node_id):
            self._note(fault, f"n{node_id} is stopped in order, for {fault.length_s} s")
            await self._nodes.stop(node_id)
            await self._down(node_id, fault)

    async def _restarted_in_turn(self, fault: Fault) -> None:
        self._note(fault, "the brokers are restarted in turn")
        for node_id in self._nodes.ids:
            if self._may_end(node_id):
                await self._nodes.stop(node_id)
                if not self._nodes.is_up(node_id):
                    self._nodes.start(node_id)
                await asyncio.sleep(1.0 + fault.length_s / 10)

    async def _broker_paused(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        nodes, host = self._nodes, self._nodes.hosts[node_id]
        life = nodes.lives[node_id]
        if nodes.is_up(node_id) and host.loop.held is None:
            self._note(fault, f"n{node_id} is paused for {fault.length_s} s")
            host.freeze()
            try:
                await asyncio.sleep(fault.length_s)
            finally:
                if nodes.lives[node_id] == life and host.up:
                    host.thaw()

    async def _isolated(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        others = [f"n{other}" for other in self._nodes.ids if other != node_id]
        self._note(fault, f"n{node_id} and other brokers do not hear each other")
        await self._blocked(fault, [(f"n{node_id}", o) for o in others], both=True)

    async def _parted(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        others = [other for other in self._nodes.ids if other != node_id]
        if others:
            other = others[fault.pick(len(others), 2)]
            both = bool(fault.pick(2, 1))
            self._note(fault, f"n{node_id} {'and' if both else 'to'} n{other}: nothing passes")
            await self._blocked(fault, [(f"n{node_id}", f"n{other}")], both=both)

    async def _blocked(self, fault: Fault, pairs: list[tuple[str, str]], *, both: bool) -> None:
        if both:
            pairs = [*pairs, *((two, one) for one, two in pairs)]
        for pair in pairs:
            self._network.block(*pair)
        try:
            await asyncio.sleep(fault.length_s)
        finally:
            for pair in pairs:
                self._network.heal(*pair)

    async def _leader_moved(self, fault: Fault) -> None:
        """Nobody ends: clients hear NOT_LEADER_OR_FOLLOWER, or of a coordinator elsewhere."""
        movable = [led for led in self._run.led() if led.others]
        if movable:
            led = movable[fault.pick(len(movable))]
            to = led.others[fault.pick(len(led.others), 1)]
            self._note(fault, f"the leader of {led.topic}-{led.partition} moves to n{to}")
            await self._run.move_leader(led, to)

    async def _disk_slow(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        host = self._nodes.hosts[node_id]
        delay_s = 0.01 + fault.pick(1000, 1) / 1000
        self._note(fault, f"the disk of n{node_id} is slow, up to {delay_s:.2f} s")
        host.disk_delay_s = delay_s
        try:
            await asyncio.sleep(fault.length_s)
        finally:
            host.disk_delay_s = 0.0

    async def _disk_full(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        if not self._may_end(node_id):
            return
        self._note(fault, f"the disk of n{node_id} is full")
        self._nodes.killed[node_id] = True  # it may give up
        disk = self._nodes.hosts[node_id].disk
        disk.capacity_bytes = disk.used_bytes() + fault.pick(3000, 1)
        try:
            await asyncio.sleep(fault.length_s)
        finally:
            disk.capacity_bytes = None

    async def _clock_wrong(self, fault: Fault) -> None:
        node_id = self._broker(fault)
        skew_ms = fault.pick(2 * BROKER_CLOCK_MS, 1) - BROKER_CLOCK_MS
        self._note(fault, f"the clock of n{node_id} is wrong by {skew_ms} ms")
        self._nodes.hosts[node_id].clock_skew_ms = skew_ms

    # -- between a client and brokers

    def _peers(self, fault: Fault) -> tuple[str, list[str]]:
        """A client, and the brokers it is about: one, by its role, or all."""
        every = [f"n{node_id}" for node_id in self._nodes.ids]
        return self._client(fault), every if fault.pick(3, 2) == 0 else [f"n{self._broker(fault)}"]

    async def _client_cut_off(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        self._note(fault, f"{client} is cut off from {', '.join(brokers)} for {fault.length_s} s")
        await self._blocked(fault, [(client, broker) for broker in brokers], both=True)

    async def _replies_delayed(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        what = f"replies of {', '.join(brokers)} to {client} are held back for {fault.length_s} s"
        self._note(fault, what)
        await self._blocked(fault, [(broker, client) for broker in brokers], both=False)

    async def _cut(self, fault: Fault, pairs: list[tuple[str, str]], how: Cut, what: str) -> None:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told() -> None:
            self._note(fault, what)
            resolve(reached)

        links, pair = self._network.links, pairs[fault.pick(len(pairs), 1)]
        links.cut(*pair, fault.step % 50, how, told)
        try:
            await asyncio.wait([reached], timeout=STEP_LIMIT_S)
        finally:
            if not reached.done():
                links.heal(*pair)

    async def _replies_lost(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        pairs = [(broker, client) for broker in brokers]
        await self._cut(fault, pairs, Cut.LOST, f"a reply to {client} is lost")

    async def _reply_cut(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        pairs = [(broker, client) for broker in brokers]
        await self._cut(fault, pairs, Cut.MIDDLE, f"a reply to {client} is cut in the middle")

    async def _request_cut(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        pairs = [(client, broker) for broker in brokers]
        how = Cut.MIDDLE if fault.pick(2) else Cut.LOST
        await self._cut(fault, pairs, how, f"a request of {client} is cut {how.value}")

    async def _link_slow(self, fault: Fault) -> None:
        client, brokers = self._peers(fault)
        most_s = 0.02 * 1.005 ** fault.pick(1000, 1)
        self._note(fault, f"{client} and {', '.join(brokers)}: up to {most_s:.2f} s slower")
        links = self._network.links
        pairs = [(client, broker) for broker in brokers]
        pairs += [(broker, client) for broker in brokers]
        for pair in pairs:
            links.slow(*pair, most_s / 10, most_s)
        try:
            await asyncio.sleep(fault.length_s)
        finally:
            for pair in pairs:
                links.heal(*pair)

    async def _network_slow(self, fault: Fault) -> None:
        await self._by_chance(fault, "the network is slow", slow=SLOW_PER_MILLION)

    async def _connections_reset(self, fault: Fault) -> None:
        if not fault.pick(2):
            what = "connections are reset by chance"
            await self._by_chance(fault, what, reset=RESETS_PER_MILLION)
            return
        client, brokers = self._peers(fault)
        self._note(fault, f"connections of {client} to {', '.join(brokers)} are reset")
        for broker in brokers:
            self._network.reset_connections(client, broker)

    async def _by_chance(self, fault: Fault, what: str, *, slow: int = 0, reset: int = 0) -> None:
        """What every link draws, per million, as long as the fault lasts; beside others."""
        self._note(fault, f"{what} for {fault.length_s} s")
        conditions = self._network.conditions
        conditions.slow_per_million += slow
        conditions.reset_per_million += reset
        try:
            await asyncio.sleep(fault.length_s)
        finally:
            conditions.slow_per_million -= slow
            conditions.reset_per_million -= reset

    # -- processes of the application

    async def _process_killed(self, fault: Fault) -> None:
        process = self._process(fault)
        if process is None:
            return
        await self._step(process, fault)
        if process.is_running:
            power_loss = fault.kind == "process loses power"
            what = "loses power" if power_loss else "is killed"
            self._note(fault, f"{process.name} {what} for {fault.length_s} s")
            life = process.lives
            process.kill(power_loss=power_loss, restart_after_s=fault.length_s)
            try:
                await asyncio.sleep(fault.length_s)
            finally:  # at the latest when the faults are over
                if process.lives == life and not process.is_finished:
                    process.start()

    async def _process_paused(self, fault: Fault) -> None:
        process = self._process(fault)
        if process is None:
            return
        await self._step(process, fault)
        if process.is_running and not process.is_paused:
            self._note(fault, f"{process.name} is paused for {fault.length_s} s")
            process.pause()
            try:
                await asyncio.sleep(fault.length_s)
            finally:
                process.resume()

    async def _process_stopped(self, fault: Fault) -> None:
        process = self._process(fault)
        if process is None:
            return
        await self._step(process, fault)
        if process.is_running:
            self._note(fault, f"{process.name} is stopped in order, for {fault.length_s} s")
            try:
                await process.stop()
                await asyncio.sleep(fault.length_s)
            finally:
                if not process.is_finished:
                    process.start()

    async def _process_clock(self, fault: Fault) -> None:
        process = self._process(fault)
        if process is not None:
            skew_ms = fault.pick(2 * PROCESS_CLOCK_MS, 2) - PROCESS_CLOCK_MS
            self._note(fault, f"the clock of {process.name} is wrong by {skew_ms} ms")
            process.skew_clock(skew_ms)


def heal(nodes: SimulatedNodes, processes: Sequence[Process]) -> None:
    """End everything that faults began: who is down starts, who is paused goes on."""
    network = nodes.simulation.network
    network.heal()
    network.links.heal_all()
    conditions = network.conditions
    conditions.slow_per_million = conditions.reset_per_million = 0
    for node_id, host in nodes.hosts.items():
        if host.up and host.loop.held is not None:
            host.thaw()
        host.disk_delay_s = 0.0
        host.disk.capacity_bytes = None
        host.disk.fault = None
        if not nodes.is_up(node_id):
            nodes.start(node_id)
    for process in processes:
        process.resume()
