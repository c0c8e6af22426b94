"""Combined nodes, each the production `Node`, on simulated hosts, disks, clocks and network.

`SimulatedNodes` formats them as a dynamic quorum, starts them, and ends their lives as a machine
can: killed (the kernel keeps what was written), without power (what was not synced is
partly lost), stopped in order. A node that gives up by itself (`Node.on_fatal`, a failed start) is
started again after a while, as a service manager does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence

from kwire.config import BrokerConfig
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.log.directories.identity_files import CLEAN_SHUTDOWN
from kwire.node.node import Node, StartError
from kwire.protocol import uuids
from kwire.testing.simulation.host import SimulatedHost
from kwire.testing.simulation.scheduler import Simulation

BROKER_PORT, CONTROLLER_PORT = 9092, 9093
CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"
RESTART_AFTER_S = 1.0


def directory_id(node_id: int) -> bytes:
    """The id of a node's only directory."""
    return bytes(15) + bytes([100 + node_id])


class SimulatedNodes:
    """The nodes by id, on hosts `n<id>`: `hosts` always, `nodes` while they live. `attach(node)`
    sees each new life before it starts. `settings` are Kafka's configs, beside those that make
    them a cluster."""

    def __init__(
        self,
        simulation: Simulation,
        ids: Sequence[int],
        settings: Mapping[str, str],
        attach: Callable[[Node], None] = lambda node: None,
    ) -> None:
        self.simulation = simulation
        self.ids = tuple(ids)
        self.hosts: dict[int, SimulatedHost] = {i: simulation.host(f"n{i}") for i in self.ids}
        self.nodes: dict[int, Node] = {}
        self.lives: dict[int, int] = dict.fromkeys(self.ids, 0)
        self.unclean: dict[int, bool] = {}  # lost unsynced data, not known to be in sync again
        self.killed: dict[int, bool] = {}  # ended without order, the same
        self.stopping: dict[int, bool] = {}
        controllers = ",".join(f"n{i}:{CONTROLLER_PORT}" for i in self.ids)
        self._settings = {
            "process.roles": "broker,controller",
            "log.dirs": "/data",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controllers,
            **settings,
        }
        self._attach = attach
        self._voters = ",".join(
            f"{i}@n{i}:{CONTROLLER_PORT}:{uuids.to_text(directory_id(i))}" for i in self.ids
        )

    # -- beginning

    def format(self) -> None:
        """Format every host's disk."""
        for node_id, host in self.hosts.items():
            host.disk.wall_ms = host.clock.wall_ms
            format_directories(
                FormatOptions(
                    cluster_id=CLUSTER_ID,
                    node_id=node_id,
                    directories=["/data"],
                    metadata_directory="/data",
                    initial_controllers=self._voters,
                ),
                clock=host.clock,
                random=host.random,
                files=host.disk,
            )
            host.disk.sync_directory("/data")

    def config(self, node_id: int) -> BrokerConfig:
        """The settings of one node."""
        listeners = (
            f"PLAINTEXT://n{node_id}:{BROKER_PORT},CONTROLLER://n{node_id}:{CONTROLLER_PORT}"
        )
        own = {"node.id": str(node_id), "listeners": listeners}
        return BrokerConfig.load(
            properties={**self._settings, **own}, environment={}, developer=False
        )

    def start(self, node_id: int) -> None:
        """Begin a life of a node; it serves some time later."""
        host = self.hosts[node_id]
        if not host.up or self.lives[node_id]:
            host.restart()
        self.lives[node_id] += 1
        self.stopping.pop(node_id, None)
        life = self.lives[node_id]
        node = Node(
            self.config(node_id),
            host.loop,
            clock=host.clock,
            random=host.random,
            files=host.disk,
            new_executor=lambda name: _Executor(name),
        )
        node.on_fatal = lambda reason: self._gave_up(node_id, life, reason)
        self.nodes[node_id] = node
        self._attach(node)
        host.loop.create_task(self._started(node, node_id, life))

    async def _started(self, node: Node, node_id: int, life: int) -> None:
        try:
            await node.start()
        except StartError as error:
            self._gave_up(node_id, life, f"cannot start: {error}")
        else:
            self.simulation.record(f"n{node_id}", "serves")

    def _gave_up(self, node_id: int, life: int, reason: str) -> None:
        if self.lives[node_id] != life or node_id not in self.nodes:
            return
        self.simulation.record(f"n{node_id}", f"gave up: {reason}")
        del self.nodes[node_id]
        world = self.simulation.host("world").loop
        world.call_soon(self._end_failed, node_id, life)

    def _end_failed(self, node_id: int, life: int) -> None:
        """The process of a node that gave up ends; its service manager starts it again."""
        if self.lives[node_id] != life or not self.hosts[node_id].up:
            return
        self.hosts[node_id].crash(power_loss=False)
        self.killed[node_id] = True
        world = self.simulation.host("world").loop
        world.call_later(RESTART_AFTER_S, self._start_again, node_id, life)

    def _start_again(self, node_id: int, life: int) -> None:
        if self.lives[node_id] == life and node_id not in self.nodes:
            self.start(node_id)

    # -- ends of a life

    def is_up(self, node_id: int) -> bool:
        return node_id in self.nodes and self.hosts[node_id].up

    def kill(self, node_id: int, *, power_loss: bool = False) -> None:
        """The process ends at once; with `power_loss` the machine does."""
        self.nodes.pop(node_id, None)
        self.hosts[node_id].crash(power_loss=power_loss)
        self.killed[node_id] = True
        if power_loss:
            self.unclean[node_id] = True

    async def stop(self, node_id: int) -> None:
        """Stop in order (SIGTERM), from any host. It is killed when this is cancelled."""
        node = self.nodes.get(node_id)
        if node is None:
            return
        life = self.lives[node_id]
        self.stopping[node_id] = True
        node.on_fatal = lambda reason: None
        task = self.hosts[node_id].loop.create_task(node.stop())
        try:
            for _ in range(100):
                await asyncio.sleep(0.1)
                if task.done() or self.lives[node_id] != life:
                    break
        finally:
            if self.lives[node_id] == life and self.nodes.pop(node_id, None) is not None:
                self.hosts[node_id].crash(power_loss=False)
                if not task.done() or not self.is_registered(node) or not self._is_clean(node_id):
                    self.killed[node_id] = True
                self.simulation.record(f"n{node_id}", "stopped")

    def _is_clean(self, node_id: int) -> bool:
        """Whether a stop could note that it was in order."""
        return self.hosts[node_id].disk.exists(f"/data/{CLEAN_SHUTDOWN}")

    # -- looking at it

    @staticmethod
    def is_registered(node: Node) -> bool:
        """Whether a broker knows the epoch of its registration. One that does not cannot tell, in
        its next life, that it has stopped in order: the controller may have registered it."""
        return node.lifecycle.epoch >= 0

    def being_stopped(self) -> dict[int, bool]:
        """The brokers that are told to stop and have not ended."""
        return {node_id: True for node_id in self.stopping if self.is_up(node_id)}

    def active_controller(self) -> Node | None:
        for node in self.nodes.values():
            if node.is_active_controller:
                return node
        return None

    def is_in_sync(self) -> bool:
        """Every partition has a leader and all of its replicas in sync, in everybody's eyes."""
        if len(self.nodes) < len(self.ids):
            return False
        for node in self.nodes.values():
            if node.lifecycle.state.name != "RUNNING" or node.metadata.driver is None:
                return False
            if len(node.metadata.driver.raft.voters.voters.ids) < len(self.ids):
                return False
            for topic in node.image.topics.by_name.values():
                for partition in topic.partitions.values():
                    if partition.leader < 0 or len(partition.isr) < len(partition.replicas):
                        return False
        return True

    def describe(self) -> str:
        """One line per node, for a failure's message."""
        lines = []
        for node_id in self.ids:
            node = self.nodes.get(node_id)
            if node is None:
                lines.append(f"n{node_id}: down")
                continue
            partitions = ", ".join(
                f"{topic.name}-{index}: leader {p.leader}@{p.leader_epoch} isr {p.isr}"
                for topic in node.image.topics.by_name.values()
                for index, p in topic.partitions.items()
                if len(p.isr) < len(p.replicas)
            )
            lines.append(
                f"n{node_id}: {node.lifecycle.state.name}, metadata {node.image.offset}, "
                f"controller {node.metadata.leader_id if node.metadata.driver else None}; "
                f"{partitions or 'all in sync'}"
            )
        return "\n".join(lines)


class _Executor(concurrent.futures.Executor):
    """Stands for a worker; the loop runs its jobs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """There is no thread to end."""
