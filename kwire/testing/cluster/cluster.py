"""A cluster of nodes that are processes: ports, formatted directories, settings, life and death."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kwire.clock import SystemClock, SystemRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.protocol import uuids
from kwire.testing.cluster.broker import Setting
from kwire.testing.cluster.metadata import replicas_agree
from kwire.testing.cluster.node import KwireNode, Node, Place
from kwire.testing.cluster.ports import HOST, free_ports
from kwire.testing.cluster.process import LOG_TAIL_CHARACTERS

CLUSTER_ID = "a3dpcmUtY2x1c3Rlci10ZQ"
COMBINED, BROKER, CONTROLLER = "broker,controller", "broker", "controller"

FAST_SETTINGS = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.fetch.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""A dead node is noticed in one or two seconds; the internal topics are small."""


class Cluster:
    """Nodes, indexed by their ids; formatted when it is made, running after `start`.

    `combined` nodes are broker and controller, `brokers` and `controllers` one of both. `kinds`
    says what a node is made by (`KwireNode` where it says nothing), so that others can be in one
    cluster with kwire. `settings` are for all nodes; before a start `cluster[id].settings` may be
    changed. `hosts` and `prefixes` put nodes elsewhere than on 127.0.0.1. `static_voters`:
    `controller.quorum.voters` and kraft.version 0. Without `root` its files end with it.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        combined: Sequence[int] = (1, 2, 3),
        brokers: Sequence[int] = (),
        controllers: Sequence[int] = (),
        kinds: Mapping[int, Callable[[Place], Node]] | None = None,
        settings: Mapping[str, Setting] | None = None,
        fast: bool = True,
        hosts: Mapping[int, str] | None = None,
        prefixes: Mapping[int, Sequence[str]] | None = None,
        static_voters: bool = False,
    ) -> None:
        self._own_root = tempfile.TemporaryDirectory(prefix="kwire-cluster-") if not root else None
        self.root = root or Path(self._own_root.name if self._own_root else "")
        self.nodes: dict[int, Node] = {}
        roles = {
            **dict.fromkeys(combined, COMBINED),
            **dict.fromkeys(brokers, BROKER),
            **dict.fromkeys(controllers, CONTROLLER),
        }
        ports = free_ports(2 * len(roles))
        for node_id, its_roles in roles.items():
            host = (hosts or {}).get(node_id, HOST)
            prefix = tuple((prefixes or {}).get(node_id, ()))
            place = Place(self.root, node_id, its_roles, host, ports.pop(), ports.pop(), prefix)
            self.nodes[node_id] = (kinds or {}).get(node_id, KwireNode)(place)
        self.controllers = [node for node in self.nodes.values() if node.place.is_controller]
        self.brokers = [node for node in self.nodes.values() if node.place.is_broker]
        shared = self._shared_settings(settings or {}, fast, static_voters)
        for node in self.nodes.values():
            node.settings = {**_own_settings(node), **shared}
        self._format(static_voters)

    def _shared_settings(
        self, settings: Mapping[str, Setting], fast: bool, static_voters: bool
    ) -> dict[str, str]:
        replicas = str(max(1, min(3, len(self.brokers))))
        controllers = [node.controller_address for node in self.controllers]
        shared = {
            "controller.quorum.bootstrap.servers": ",".join(controllers),
            "controller.listener.names": "CONTROLLER",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1" if len(self.brokers) < 3 else "2",
            "share.coordinator.state.topic.replication.factor": replicas,
            **(FAST_SETTINGS if fast else {}),
            **{name: str(value) for name, value in settings.items()},
        }
        if static_voters:
            shared["controller.quorum.voters"] = ",".join(
                f"{node.node_id}@{node.controller_address}" for node in self.controllers
            )
        return shared

    def _format(self, static_voters: bool) -> None:
        random = SystemRandom()
        initial = ",".join(
            f"{node.node_id}@{node.controller_address}:{uuids.to_text(uuids.random_uuid(random))}"
            for node in self.controllers
        )
        for node in self.nodes.values():
            node.data.mkdir(parents=True)
            is_controller = node.place.is_controller
            options = FormatOptions(
                CLUSTER_ID,
                node.node_id,
                [str(node.data)],
                str(node.data),
                is_controller=is_controller,
                initial_controllers=initial if is_controller and not static_voters else None,
                no_initial_controllers=not is_controller,
                has_static_voters=static_voters,
            )
            format_directories(options, clock=SystemClock(), random=random)

    def __getitem__(self, node_id: int) -> Node:
        return self.nodes[node_id]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(self._log_tails())
        self.close()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, as clients want them."""
        return ",".join(node.bootstrap for node in self.brokers)

    def start(self) -> Self:
        """Start every node, controllers first, and wait until all serve."""
        for node in sorted(self, key=lambda node: not node.place.is_controller):
            node.start()
        for node in self:
            node.wait_ready()
        return self

    def stop(self) -> None:
        """Stop every node in order, the brokers first."""
        for node in sorted(self, key=lambda node: node.place.is_controller):
            node.stop()

    def close(self) -> None:
        """Kill what runs; files of its own go."""
        for node in self:
            node.close()
        if self._own_root is not None:
            self._own_root.cleanup()

    def in_sync(self, topics: Sequence[str], without: Collection[int] = ()) -> bool:
        """Whether every broker says the same of the topics: leaders, epochs, all replicas in sync.

        `without`: brokers that are not asked, and not expected among the replicas in sync.
        """
        asked = [node.bootstrap for node in self.brokers if node.node_id not in without]
        return replicas_agree(asked, topics)

    def _log_tails(self) -> str:
        return "\n".join(
            f"node {node.node_id}, the end of its log:\n{node.log_text()[-LOG_TAIL_CHARACTERS:]}"
            for node in self
        )


def _own_settings(node: Node) -> dict[str, str]:
    listeners = []
    if node.place.is_broker:
        listeners.append(f"PLAINTEXT://{node.bootstrap}")
    if node.place.is_controller:
        listeners.append(f"CONTROLLER://{node.controller_address}")
    return {
        "process.roles": node.place.roles,
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(listeners),
        "log.dirs": str(node.data),
    }
