"""Publishing with idempotency keys while nodes are killed: each message once, by every answer."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from kwire.testing.cluster import Cluster, free_ports, wait_for
from tests.support.effort import seeds
from tests.support.idempotent_posters import PARTITIONS, TOPIC, Posters
from tests.support.wire import WireClient

SETTINGS = {"transaction.state.log.num.partitions": 2, "min.insync.replicas": 2}


def run(posters_count: int, messages: int, kills: int) -> Posters:
    """Posters over three nodes, of which one after the other is killed."""
    with Cluster(settings=SETTINGS) as cluster:
        for node, port in zip(cluster.brokers, free_ports(3), strict=True):
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"
        cluster.start()
        with WireClient(cluster.bootstrap.split(",")[0]) as client:
            client.create_topic(TOPIC, PARTITIONS)
        (seed,) = seeds(1)[:1]
        posters = Posters(cluster, posters_count, messages, seed)
        posters.start()
        try:
            for turn in range(kills):
                share = posters_count * messages * (turn + 1) // (kills + 1)
                wait_for(lambda: posters.published() >= share, f"{share} published", 120.0)  # noqa: B023
                victim = cluster.brokers[turn % 3]
                victim.kill()
                victim.start()
                victim.wait_ready()
        finally:
            posters.join()
        posters.check(cluster.bootstrap)
        return posters


def test_each_message_is_there_once_though_a_node_is_killed() -> None:
    posters = run(posters_count=12, messages=6, kills=1)
    assert len(posters.answers) == 12 * 6
