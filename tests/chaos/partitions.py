"""Three brokers in network namespaces of their own, cut off from each other in one or both ways.

    python -m tests.chaos.partitions SEED DIRECTORY

What `test_partitions.py` runs, in the hub of the little network: real clients write all the while,
brokers are cut, frozen and killed, and at the end everything is read back. Exit status 0 when every
promise held; without the rights for namespaces the status is 3 and the reason is printed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

from kwire.testing.cluster import Cluster, wait_for
from tests.support.history import QUICK, TransactionalWriter, Writer, check, check_transactions
from tests.support.namespaces import HUB, Network, missing
from tests.support.topics import create_topics

NODES = ("1", "2", "3")
FAULTS = 6
SHORT_S, LONG_S = 0.5, 6.0
PATIENCE_S = 120.0
TOPICS = {"t": 3, "x": 3}
KINDS = ("isolate", "deaf", "mute", "pair", "one-way", "freeze", "kill")
EXIT_SKIPPED = 3
SETTINGS = {"min.insync.replicas": 2, "transaction.max.timeout.ms": 60_000}


class Faults:
    """Draws faults and does them; `told` says what was done."""

    def __init__(self, network: Network, cluster: Cluster, draw: random.Random) -> None:
        self._network = network
        self._cluster = cluster
        self._draw = draw
        self.told: list[str] = []

    def cuts(self, kind: str, victim: str, other: str) -> list[tuple[str, str]]:
        """(from, to) of what is lost. Clients in the hub reach everybody: they meet the leader
        that does not know yet that it is none."""
        others = [node for node in NODES if node != victim]
        away = [(victim, node) for node in others]
        back = [(node, victim) for node in others]
        if kind == "isolate":
            return away + back
        if kind == "mute":
            return away
        if kind == "deaf":
            return back
        if kind == "pair":
            return [(victim, other), (other, victim)]
        return [(victim, other)]

    def strike(self, kind: str) -> None:
        """One fault, for a while, and its end."""
        victim, other = self._draw.sample(NODES, 2)
        seconds = self._draw.uniform(SHORT_S, LONG_S)
        self.told.append(f"{kind} {victim} ({other}) {seconds:.1f} s")
        print(self.told[-1], flush=True)
        node = self._cluster[int(victim)]
        if kind == "kill":
            node.kill()
            threading.Event().wait(seconds)
            node.start()
            node.wait_ready()
        elif kind == "freeze":
            node.pause()
            threading.Event().wait(seconds)
            node.resume()
        else:
            for source, target in self.cuts(kind, victim, other):
                self._network.cut(source, target)
            threading.Event().wait(seconds)
            self._network.heal()


def run(seed: int, network: Network, cluster: Cluster) -> None:
    """Every kind of fault once, in a drawn order, with writers at work; then the checks."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUICK})
    create_topics(client, TOPICS)
    draw = random.Random(seed)
    faults = Faults(network, cluster, draw)
    kinds = draw.sample(KINDS, FAULTS)

    def in_sync() -> bool:
        return cluster.in_sync(list(TOPICS))

    with (
        Writer(cluster.bootstrap, "t", 3, {"delivery.timeout.ms": 180_000}) as writer,
        TransactionalWriter(cluster.bootstrap, "x") as transactions,
    ):
        writer.wait_acknowledged()
        for kind in kinds:
            faults.strike(kind)
            wait_for(in_sync, f"all replicas in sync after {faults.told[-1]}", PATIENCE_S)
            writer.wait_acknowledged(20)
    assert not writer.failed, writer.failed[:3]
    check(cluster.bootstrap, "t", writer)
    check_transactions(cluster.bootstrap, "x", transactions)
    told = {"records": writer.count, "transactions": len(transactions.outcomes)}
    print(json.dumps(told), flush=True)


def inside(seed: int, directory: Path, tag: int) -> int:
    """In the hub's namespace."""
    network = Network(NODES, tag)
    cluster = Cluster(
        directory,
        settings=SETTINGS,
        hosts={int(node): network.address(node) for node in NODES},
        prefixes={int(node): network.prefix(node) for node in NODES},
    )
    with cluster:
        cluster.start()
        run(seed, network, cluster)
    return 0


def main(arguments: list[str]) -> int:
    seed, directory = int(arguments[0]), Path(arguments[1])
    if len(arguments) > 2:
        return inside(seed, directory, int(arguments[2]))
    why = missing()
    if why is not None:
        print(why)
        return EXIT_SKIPPED
    with Network(NODES, os.getpid()) as network:
        words = [*network.prefix(HUB), sys.executable, "-m", "tests.chaos.partitions"]
        words += [str(seed), str(directory), str(network.tag)]
        return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
