"""What tests of applications on one simulated broker share: the broker, and silence."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import pytest

from kwire.config import BrokerConfig
from kwire.node.node import Node
from kwire.testing.simulation import SimulatedHost

PORT = 9092
SETTINGS: Mapping[str, str] = {
    "log.dirs": "/data",
    "listeners": f"PLAINTEXT://broker:{PORT}",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Clients tell of every lost connection, the broker of its recovery."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def start(host: SimulatedHost, settings: Mapping[str, str] = SETTINGS) -> Node:
    """The broker, which serves at `broker:PORT` when this returns."""
    config = BrokerConfig.load(
        properties={}, environment={}, overrides=dict(settings), developer=True
    )
    node = Node(config, host.loop, clock=host.clock, random=host.random, files=host.disk)
    host.simulation.run(host, node.start())
    return node
