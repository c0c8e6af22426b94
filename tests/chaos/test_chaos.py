"""Three broker processes under kill -9, SIGSTOP and restarts, with real clients, from seeds.

Nothing acknowledged is lost, nothing is there twice, the order is kept, a transaction is seen
wholly or not at all. `make chaos` runs more seeds; the machine's timing is not the seed's, so a
failure repeats often, not always.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, NodeProcess, create_topics, wait_for
from tests.support.effort import seeds
from tests.support.history import QUICK, Writer, check

pytest.importorskip("confluent_kafka")

NODES = (1, 2, 3)
FAULTS = 5


class TransactionalWriter:
    """Transactions of three records each over three partitions; every fourth aborts.

    `outcomes`: number -> True (committed), False (aborted), None (nobody knows).
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._make: Any = lambda: Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": "chaos",
                "transaction.timeout.ms": 20_000,
                **QUICK,
            }
        )
        self._topic = topic
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.outcomes: dict[int, bool | None] = {}
        self.error: BaseException | None = None

    def __enter__(self) -> TransactionalWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the transactional producer does not end"

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.error = error

    def _write(self) -> None:
        from confluent_kafka import KafkaException

        producer = None
        number = 0
        while not self._end.is_set():
            number += 1
            self.outcomes[number] = False
            try:
                if producer is None:
                    producer = self._make()
                    producer.init_transactions(60)
                producer.begin_transaction()
                for partition in range(3):
                    producer.produce(self._topic, b"%d" % number, partition=partition)
                if number % 4 == 0:
                    producer.abort_transaction(60)
                else:
                    self.outcomes[number] = None
                    producer.commit_transaction(60)
                    self.outcomes[number] = True
            except KafkaException:
                producer = None  # a new one ends what this one has begun


def seen_transactions(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Number -> partitions in which a read_committed consumer sees it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "seen",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUICK,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    seen: dict[int, list[int]] = {}
    ended: set[int] = set()

    def complete() -> bool:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                seen.setdefault(int(message.value()), []).append(message.partition())
            else:
                ended.add(message.partition())
        return len(ended) == 3

    wait_for(complete, "the end of every partition")
    consumer.close()
    return seen


def stop_for_a_while(node: NodeProcess, seconds: float) -> None:
    """SIGSTOP; the others may take over meanwhile."""
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    threading.Event().wait(seconds)
    node.process.send_signal(signal.SIGCONT)


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
        topics = client.list_topics(timeout=30).topics
        return all(len(p.isrs) == 3 for name in "tx" for p in topics[name].partitions.values())

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
    seen = seen_transactions(cluster.bootstrap, "x")
    assert any(outcome for outcome in transactions.outcomes.values())
    for number, outcome in transactions.outcomes.items():
        partitions = sorted(seen.get(number, []))
        expected = {True: [[0, 1, 2]], False: [[]], None: [[], [0, 1, 2]]}[outcome]
        assert partitions in expected, f"transaction {number} ({outcome}) is seen in {partitions}"
