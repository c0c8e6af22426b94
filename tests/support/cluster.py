"""Clusters of real processes: kwire nodes by `kwire serve --config`, Apache Kafka beside them.

with Cluster(tmp_path) as cluster:            # three kwire nodes, broker and controller each
    cluster.start()
    cluster.bootstrap                          # "127.0.0.1:...,..."
    cluster[2].kill(); cluster[2].start(); cluster[2].wait_ready()

Cluster(tmp_path, kwire=(1,), kafka_brokers=(4,))   # one kwire controller, a Kafka broker joins
Cluster(tmp_path, kafka=(1,), kwire_brokers=(4,))   # the other way round
Cluster(tmp_path, static_voters=True)               # controller.quorum.voters, kraft.version 0
Cluster(tmp_path, hosts={1: ...}, prefixes={1: ("ip", "netns", "exec", ...)})   # elsewhere
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.protocol import uuids
from tests.support.kafka import ROOT, RUN, kafka_libs
from tests.support.wire import ConnectionClosed, WireClient

READY = "kwire ready on "
WAIT_S = 60.0
ANSWER_S = 10.0
CLUSTER_ID = "a3dpcmUtY2x1c3Rlci10ZQ"

FAST = {
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


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = WAIT_S) -> Any:
    """The first true value of `condition`; fails with `what` when it does not come."""
    end = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"{what}: not within {timeout_s:.0f} s"
        time.sleep(0.05)


def free_port_numbers(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class NodeProcess:
    """One node: its files, its ports, its process."""

    is_kafka = False

    def __init__(self, root: Path, node_id: int, roles: str, port: int, controller: int) -> None:
        self.root = root
        self.node_id = node_id
        self.roles = roles
        self.port = port
        self.controller_port = controller
        self.host = "127.0.0.1"
        self.prefix: tuple[str, ...] = ()
        self.settings: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.root / f"node-{self.node_id}"

    @property
    def log_path(self) -> Path:
        return self.root / f"node-{self.node_id}.log"

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> None:
        """Start the process; `wait_ready` waits for it."""
        path = self.root / f"node-{self.node_id}.properties"
        lines = [f"{name}={value}" for name, value in self.settings.items()]
        path.write_text("\n".join([*lines, ""]))
        with self.log_path.open("ab") as output:
            self.ready_from = output.tell()
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "kwire", "serve", "--config", str(path)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"node {self.node_id} ended:\n{self.log_text()[-3000:]}")
        with self.log_path.open("rb") as output:
            output.seek(self.ready_from)
            return READY.encode() in output.read()

    def wait_ready(self) -> None:
        wait_for(self.is_ready, f"node {self.node_id} ready\n{self.log_text()[-3000:]}")

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(30)
            raise AssertionError(
                f"node {self.node_id} did not stop:\n{self.log_text()[-2000:]}"
            ) from None


class KafkaProcess(NodeProcess):
    """An Apache Kafka node, run by the peers' script."""

    is_kafka = True

    @property
    def folder(self) -> Path:
        return self.root / f"kafka-{self.node_id}"

    @property
    def data(self) -> Path:
        return self.folder / "node-1" / "data"  # where the script keeps it

    @property
    def log_path(self) -> Path:
        return self.folder / "node-1" / "server.log"

    def start(self) -> None:
        command: list[Any] = [RUN, "start", "--libs", kafka_libs(), "--dir", self.folder]
        command += ["--port", str(self.port), "--id", str(self.node_id), "--wait", "120"]
        for name, value in self.settings.items():
            command += ["--prop", f"{name}={value}"]
        environment = {**os.environ, "JIT_LEVEL": "1", "NO_FORMAT": "1"}
        with (self.root / f"kafka-{self.node_id}.start").open("wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=output
            )

    def is_ready(self) -> bool:
        assert self.process is not None
        status = self.process.poll()
        if status:
            raise AssertionError((self.root / f"kafka-{self.node_id}.start").read_text())
        return status == 0

    def wait_ready(self) -> None:
        wait_for(self.is_ready, f"Kafka node {self.node_id} ready", 120)

    def kill(self) -> None:
        subprocess.run([RUN, "stop", "--dir", self.folder, "--kill"], timeout=60, check=True)

    def stop(self) -> None:
        if (self.folder / "node-1" / "pid").exists():
            subprocess.run([RUN, "stop", "--dir", self.folder], timeout=90, check=False)


class Cluster:
    """See the module. Nodes are indexed by their ids."""

    def __init__(
        self,
        root: Path,
        *,
        kwire: Sequence[int] = (1, 2, 3),
        kwire_brokers: Sequence[int] = (),
        kwire_controllers: Sequence[int] = (),
        kafka: Sequence[int] = (),
        kafka_brokers: Sequence[int] = (),
        settings: Mapping[str, object] | None = None,
        fast: bool = True,
        hosts: Mapping[int, str] | None = None,
        prefixes: Mapping[int, Sequence[str]] | None = None,
        static_voters: bool = False,
    ) -> None:
        self.root = root
        self.nodes: dict[int, NodeProcess] = {}
        ids = [*kwire, *kwire_brokers, *kwire_controllers, *kafka, *kafka_brokers]
        ports = free_port_numbers(2 * len(ids))
        for node_id in ids:
            cls = KafkaProcess if node_id in (*kafka, *kafka_brokers) else NodeProcess
            roles = "broker,controller" if node_id in (*kwire, *kafka) else "broker"
            if node_id in kwire_controllers:
                roles = "controller"
            node = self.nodes[node_id] = cls(root, node_id, roles, ports.pop(), ports.pop())
            node.host = (hosts or {}).get(node_id, node.host)
            node.prefix = tuple((prefixes or {}).get(node_id, ()))
        self.controllers = [node for node in self.nodes.values() if "controller" in node.roles]
        brokers = len(ids) - len(kwire_controllers)
        replicas = str(min(3, brokers))
        common = {
            "controller.quorum.bootstrap.servers": ",".join(
                f"{node.host}:{node.controller_port}" for node in self.controllers
            ),
            "controller.listener.names": "CONTROLLER",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1" if brokers < 3 else "2",
            "share.coordinator.state.topic.replication.factor": replicas,
            **(FAST if fast else {}),
            **{name: str(value) for name, value in (settings or {}).items()},
        }
        for node in self.nodes.values():
            names = []
            if "broker" in node.roles:
                names.append(f"PLAINTEXT://{node.host}:{node.port}")
            if "controller" in node.roles:
                names.append(f"CONTROLLER://{node.host}:{node.controller_port}")
            listeners = ",".join(names)
            node.settings = {
                "process.roles": node.roles,
                "node.id": str(node.node_id),
                "listeners": listeners,
                "advertised.listeners": listeners,
                "log.dirs": str(node.data),
                **common,
            }
        if static_voters:
            voters = ",".join(
                f"{node.node_id}@{node.host}:{node.controller_port}" for node in self.controllers
            )
            for node in self.nodes.values():
                node.settings["controller.quorum.voters"] = voters
        self._format(static_voters)

    def _format(self, static_voters: bool) -> None:
        random = SystemRandom()
        initial = ",".join(
            f"{node.node_id}@{node.host}:{node.controller_port}:"
            f"{uuids.to_text(uuids.random_uuid(random))}"
            for node in self.controllers
        )
        for node in self.nodes.values():
            node.data.mkdir(parents=True)
            is_controller = "controller" in node.roles and not static_voters
            options = FormatOptions(
                CLUSTER_ID,
                node.node_id,
                [str(node.data)],
                str(node.data),
                is_controller="controller" in node.roles,
                initial_controllers=initial if is_controller else None,
                no_initial_controllers="controller" not in node.roles,
                has_static_voters=static_voters,
            )
            format_directories(options, clock=SystemClock(), random=random)

    def __getitem__(self, node_id: int) -> NodeProcess:
        return self.nodes[node_id]

    def __iter__(self) -> Iterator[NodeProcess]:
        return iter(self.nodes.values())

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        brokers = [node for node in self.nodes.values() if "broker" in node.roles]
        return ",".join(f"{node.host}:{node.port}" for node in brokers)

    def start(self) -> None:
        """Start every node and wait until all are ready."""
        for node in self.controllers:
            node.start()
        for node in self.nodes.values():
            if node not in self.controllers:
                node.start()
        for node in self.nodes.values():
            node.wait_ready()

    def close(self) -> None:
        for node in self.nodes.values():
            if isinstance(node, KafkaProcess):
                if (node.folder / "node-1" / "pid").exists():
                    node.kill()
            elif node.process is not None and node.process.poll() is None:
                node.process.kill()
                node.process.wait(30)


def all_in_sync(cluster: Cluster, topics: Sequence[str]) -> bool:
    """Whether every broker says the same of the topics: leaders, epochs, and all replicas in sync.

    One broker's word is not enough: who was cut off from the others still tells what was before,
    and a client that believes it reads old leaders to their ends.
    """
    told: list[dict[tuple[str, int], tuple[int, int, int]]] = []
    for address in cluster.bootstrap.split(","):
        try:
            with WireClient(address, ANSWER_S) as client:
                answer = client.metadata(list(topics))
        except (OSError, ConnectionClosed):
            return False
        told.append(
            {
                (topic.name, p.partition_index): (p.leader_id, p.leader_epoch, len(p.isr_nodes))
                for topic in answer.topics
                for p in topic.partitions
            }
        )
    replicas = len(told)
    return all(
        found == told[0] and found and all(isr == replicas for _, _, isr in found.values())
        for found in told
    )


def create_topics(client: Any, topics: Mapping[str, int], replicas: int = 3) -> None:
    """Create topics (name -> partitions) with an AdminClient of confluent-kafka, until they are.

    Right after its start librdkafka may fail a request because it drops the connection to the
    address that it began with (_DESTROY_BROKER): nobody knows then whether the request arrived.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic

    def created(topic: str, partitions: int) -> bool:
        try:
            client.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(30)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                return True
            if code == KafkaError._DESTROY_BROKER:
                return False
            raise
        return True

    for topic, partitions in topics.items():
        wait_for(lambda t=topic, p=partitions: created(t, p), f"topic {topic}")
