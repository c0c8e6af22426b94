"""The three nodes of a history, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.node.node import Node
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.nodes import (
    BROKER_PORT,
    CLUSTER_ID,
    CONTROLLER_PORT,
    SimulatedNodes,
    directory_id,
)

__all__ = ["BROKER_PORT", "CLUSTER_ID", "CONTROLLER_PORT", "directory_id"]

IDS = (1, 2, 3)
BOOTSTRAP = [(f"n{node_id}", BROKER_PORT) for node_id in IDS]

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "transaction.max.timeout.ms": "60000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


class Cluster(SimulatedNodes):
    """Three of them; each follows the metadata a partition a turn: anything may come between."""

    def __init__(
        self,
        simulation: Simulation,
        settings: Mapping[str, str] | None = None,
        attach: Callable[[Node], None] = lambda node: None,
    ) -> None:
        def made(node: Node) -> None:
            node.replicas.slice_cost = 1
            attach(node)

        super().__init__(simulation, IDS, {**SETTINGS, **(settings or {})}, made)
