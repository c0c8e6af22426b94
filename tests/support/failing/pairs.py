"""What goes wrong between two brokers, and what each client makes of it.

`python -m tests.support.failing.pairs` records Apache Kafka's. Broker 1 leads the topics of the
scenes, broker 2 follows; kwire's has a third broker, so that its quorum can lose one.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from kwire.protocol import messages as m
from kwire.testing import Cluster
from kwire.testing.cluster import Cluster as Nodes
from kwire.testing.waiting import wait_until
from tests.support.cluster_fault_answers import ASKED, OTHER, produce, started
from tests.support.failing.clients import CLIENTS, Client, Sending
from tests.support.wire import WireClient

DATA = pathlib.Path(__file__).parents[2] / "golden/data/pair_outcomes.json"
OFFSETS = "__consumer_offsets"
SHORT_MS = 4000
LIMIT_S = 60.0
COMPACTED = {"cleanup.policy": "compact"}
STRICT = {"min.insync.replicas": "2"}
_numbers = itertools.count(1)


class Pair(Protocol):
    """Two brokers; the follower of a topic lags inside of the block."""

    bootstrap: str

    def lag(self, topic: str) -> AbstractContextManager[object]: ...

    def move(self, topic: str, to: int) -> None: ...


class CommandedPair:
    """kwire's, by faults."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster[ASKED].bootstrap

    @contextmanager
    def lag(self, topic: str) -> Iterator[None]:
        with self._cluster.faults.add("isr-shrink", topic=topic):
            write(self.bootstrap, topic)
            wait_until(lambda: in_sync(self.bootstrap, topic) == [ASKED], timeout_s=LIMIT_S)
            yield

    def move(self, topic: str, to: int) -> None:
        self._cluster.faults.add("move-leader", topic=topic, partition=0, to=to)


class KafkaPair:
    """Apache Kafka's."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.bootstrap = nodes[ASKED].bootstrap

    @contextmanager
    def lag(self, topic: str) -> Iterator[None]:
        """The follower is stopped (SIGSTOP)."""
        self._nodes[OTHER].pause()
        try:
            write(self.bootstrap, topic)
            wait_until(lambda: in_sync(self.bootstrap, topic) == [ASKED], timeout_s=LIMIT_S)
            yield
        finally:
            self._nodes[OTHER].resume()
        wait_until(lambda: len(in_sync(self.bootstrap, topic)) == 2, timeout_s=LIMIT_S)

    def move(self, topic: str, to: int) -> None:
        """As an administrator moves it: another order of replicas, and an election."""
        shape, elect = m.AlterPartitionReassignmentsRequest, m.ElectLeadersRequest
        replicas = [to, ASKED + OTHER - to]
        partition = shape.ReassignablePartition(partition_index=0, replicas=replicas)
        moved = shape.ReassignableTopic(name=topic, partitions=[partition])
        elected = elect.TopicPartitions(topic=topic, partitions=[0])
        with WireClient(self.bootstrap) as client:
            client.call(shape(topics=[moved], timeout_ms=10_000), 0)
            wait_until(
                lambda: client.topic(topic).partitions[0].replica_nodes == replicas,
                timeout_s=LIMIT_S,
            )
            client.call(elect(topic_partitions=[elected], timeout_ms=10_000), 2)
            wait_until(lambda: client.topic(topic).partitions[0].leader_id == to, timeout_s=LIMIT_S)


def in_sync(bootstrap: str, topic: str) -> list[int]:
    """The replicas of partition 0 in sync."""
    with WireClient(bootstrap) as client:
        found: list[int] = client.topic(topic).partitions[0].isr_nodes
    return sorted(found)


def write(bootstrap: str, topic: str) -> None:
    """One record that waits for nobody: who has all that there is does not lag."""
    request = produce(topic).copy(acks=1)
    with WireClient(bootstrap) as client:
        client.call(request, 9)


def create(bootstrap: str, topic: str, configs: dict[str, str]) -> None:
    """One partition, led by broker 1 and followed by broker 2."""
    shape = m.CreateTopicsRequest
    created = shape.CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            shape.CreatableReplicaAssignment(partition_index=0, broker_ids=[ASKED, OTHER])
        ],
        configs=[
            shape.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()
        ],
    )
    with WireClient(bootstrap) as client:
        (answer,) = client.call(shape(topics=[created], timeout_ms=10_000), 5).topics
        assert answer.error_code == 0, answer
        client.topic(topic)


def kept(bootstrap: str, topic: str) -> int:
    """The end of partition 0, as its leader has it."""
    shape = m.ListOffsetsRequest
    partition = shape.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    request = shape(
        replica_id=-1, topics=[shape.ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    with WireClient(bootstrap) as client:
        host, port = client.brokers()[client.topic(topic).partitions[0].leader_id]
    with WireClient(f"{host}:{port}") as leader:
        found: int = leader.call(request, 4).topics[0].partitions[0].offset
    return found


def lagging(pair: Pair, client: Client, name: str) -> str:
    create(pair.bootstrap, name, STRICT)
    with pair.lag(name):
        error = client.send(pair.bootstrap, name, [b"a"], Sending(delivery_ms=SHORT_MS))
        return f"{error}, {kept(pair.bootstrap, name)} kept"


def leader_moves(pair: Pair, client: Client, name: str) -> str:
    create(pair.bootstrap, name, STRICT)
    how = Sending(idempotent=True, between=lambda: pair.move(name, OTHER))
    error = client.send(pair.bootstrap, name, [b"a", b"b"], how)
    return f"{error}, {kept(pair.bootstrap, name)} kept"


def coordinator_moves(pair: Pair, client: Client, name: str) -> str:
    create(pair.bootstrap, name, STRICT)
    pair.move(OFFSETS, ASKED)
    client.send(pair.bootstrap, name, [b"a"], Sending(idempotent=True))

    def between() -> None:
        pair.move(OFFSETS, OTHER)
        client.send(pair.bootstrap, name, [b"b"], Sending(idempotent=True))

    return client.member(pair.bootstrap, name, name, between, commits=True)


SCENES: dict[str, Callable[[Pair, Client, str], str]] = {
    "isr-shrink": lagging,
    "move-leader": leader_moves,
    "move-leader of a coordinator": coordinator_moves,
}


def outcome(scene: str, client: Client, pair: Pair) -> str:
    """By this client, on a topic of its own."""
    return SCENES[scene](pair, client, f"pair-{next(_numbers)}")


def outcomes(nodes: Nodes) -> dict[str, dict[str, str]]:
    """Of two nodes of Apache Kafka that have just started, by scene and client."""
    pair = KafkaPair(nodes)
    create(pair.bootstrap, OFFSETS, COMPACTED)
    return {
        scene: {client.name: outcome(scene, client, pair) for client in CLIENTS} for scene in SCENES
    }


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        started(pathlib.Path(directory)) as nodes,
    ):
        found = outcomes(nodes.start())
    DATA.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
