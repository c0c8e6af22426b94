"""Three broker processes under kill -9, SIGSTOP and restarts, with real clients, from seeds.

Nothing acknowledged is lost, nothing is there twice, the order is kept, a transaction is seen
wholly or not at all. `make chaos` runs more seeds; the machine's timing is not the seed's, so a
failure repeats often, not always.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.testing.cluster import Cluster, Node, wait_for
from tests.support.effort import seeds
from tests.support.history import (
    QUICK,
    TransactionalWriter,
    Writer,
    check,
    check_transactions,
)
from tests.support.topics import create_topics

pytest.importorskip("confluent_kafka")

NODES = (1, 2, 3)
FAULTS = 5


def stop_for_a_while(node: Node, seconds: float) -> None:
    """SIGSTOP; the others may take over meanwhile."""
    node.pause()
    threading.Event().wait(seconds)
    node.resume()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"min.insync.replicas": 2, "transaction.max.timeout.ms": 60_000}
    with Cluster(tmp_path, settings=settings) as cluster:
        cluster.start()
        yield cluster


@pytest.mark.parametrize("seed", seeds(1))
def test_promises_hold_while_processes_die(cluster: Cluster, seed: int) -> None:
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUICK})
    create_topics(client, {"t": 3, "x": 3})
    draw = random.Random(seed)

    def in_sync() -> bool:
        return cluster.in_sync(("t", "x"))

    with (
        Writer(cluster.bootstrap, "t", 3) as writer,
        TransactionalWriter(cluster.bootstrap, "x") as transactions,
    ):
        writer.wait_acknowledged()
        for _ in range(FAULTS):
            node = cluster[draw.choice(NODES)]
            kind = draw.choice(("kill", "kill", "freeze", "restart"))
            if kind == "freeze":
                stop_for_a_while(node, draw.uniform(0.5, 4))
            else:
                node.kill() if kind == "kill" else node.stop()
                threading.Event().wait(draw.uniform(0, 3))
                node.start()
                node.wait_ready()
            wait_for(in_sync, "all replicas in sync")
            writer.wait_acknowledged(50)
    assert transactions.error is None, transactions.error
    assert not writer.failed, writer.failed[:3]
    check(cluster.bootstrap, "t", writer)
    check_transactions(cluster.bootstrap, "x", transactions)
