"""How long a topic is not writable after its leader was killed: `kwire serve --brokers 3`.

    bench/failover.py [--rounds N] [--trace] [-o NAME=VALUE ...]

Kills (SIGKILL) the broker that leads the partition, in turn one that is the active controller and
one that is not, and measures from the kill to the first record that was sent afterwards and
acknowledged with acks=all: by a librdkafka producer with its defaults and 50 records a second
(`client`: it looks for leaders once a second; one for each kill, since it does not connect again
for up to 10 s to a broker that it saw die), and by a producer of this file that asks every 5 ms
(`cluster`: what the cluster alone needs). `--trace` prints what the nodes logged in between.
The figures are wall time: meaningful on a quiet machine only.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kwire.protocol import frame  # noqa: E402
from kwire.protocol import messages as m  # noqa: E402
from kwire.protocol.records import Record, build_batch  # noqa: E402

TOPIC = "failover"
PARTITIONS = 3
METADATA_VERSION, PRODUCE_VERSION, QUORUM_VERSION = 12, 9, 1
TIMEOUT_S = 30.0
POLL_S = 0.005
CLIENT_S = 0.02
GOAL_S = 2.0


def call(address: str, request: Any, version: int, timeout_s: float = 1.0) -> Any:
    """One request on a connection of its own; OSError when nobody answers."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout_s) as connection:
        key = type(request).API_KEY
        connection.sendall(b"".join(frame.encode_request(key, version, 1, "failover", request)))
        size = int.from_bytes(_exactly(connection, 4), "big")
        return frame.decode_response(key, version, _exactly(connection, size))[1]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("end of stream")
        data += piece
    return data


class Cluster:
    """The brokers of one `kwire serve --brokers 3`; `addresses` and `pids` by broker id."""

    def __init__(self, log: pathlib.Path, overrides: list[str]) -> None:
        self.log = log
        options = [part for text in overrides for part in ("-o", text)]
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kwire", "serve", "--brokers", "3", "--ephemeral"),
                *("--listen", "127.0.0.1:0", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=log.open("wb"),
            text=True,
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline().split()
        if not ready:
            raise SystemExit(log.read_text())
        self.addresses = dict(enumerate(ready[-1].split(","), 1))

    def pid(self, broker_id: int) -> int:
        """Of the broker's present process."""
        return int(re.findall(rf"broker {broker_id} is process (\d+)", self.log.read_text())[-1])

    def partitions(self) -> dict[int, Any]:
        """What any broker knows of the topic."""
        request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)])
        for address in self.addresses.values():
            try:
                topic = call(address, request, METADATA_VERSION).topics[0]
            except OSError:
                continue
            return {one.partition_index: one for one in topic.partitions}
        return {}

    def controller(self) -> int:
        """The active controller."""
        request = m.DescribeQuorumRequest(
            topics=[
                m.DescribeQuorumRequest.TopicData(
                    topic_name="__cluster_metadata",
                    partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)],
                )
            ]
        )
        response = call(self.addresses[1], request, QUORUM_VERSION)
        return int(response.topics[0].partitions[0].leader_id)

    def is_whole(self) -> bool:
        """Every partition in sync on all brokers, each led by its preferred leader or not."""
        found = self.partitions()
        return len(found) == PARTITIONS and all(len(p.isr_nodes) == 3 for p in found.values())

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def wait(condition: Any, what: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"failover: no {what} in {TIMEOUT_S} s")
        time.sleep(0.05)


class Asker:
    """Produces one record at a time to whoever says it leads, until one is acknowledged."""

    def __init__(self, cluster: Cluster, partition: int, victim: int) -> None:
        self._others = {i: a for i, a in cluster.addresses.items() if i != victim}
        self._partition = partition

    def writable(self) -> float:
        """When a record was acknowledged."""
        while True:
            for address in self._others.values():
                try:
                    if self._produce(address):
                        return time.monotonic()
                except OSError:
                    pass
            time.sleep(POLL_S)

    def _produce(self, address: str) -> bool:
        request = m.ProduceRequest
        batch = build_batch([Record(0, int(time.time() * 1000), None, b"x", [])])
        topic = request.TopicProduceData(
            name=TOPIC,
            partition_data=[request.PartitionProduceData(index=self._partition, records=batch)],
        )
        response = call(
            address, request(acks=-1, timeout_ms=5000, topic_data=[topic]), PRODUCE_VERSION, 5.0
        )
        return int(response.responses[0].partition_responses[0].error_code) == 0


def measure(
    cluster: Cluster, producer: Any, of_controller: bool, trace: bool
) -> tuple[str, float, float]:
    """Kill one leader; seconds until the cluster took a record, and until the client had one in."""
    wait(cluster.is_whole, "cluster with every replica in sync")
    for index in range(PARTITIONS):
        producer.produce(TOPIC, b"x", partition=index)
    producer.flush(TIMEOUT_S)
    time.sleep(1)
    controller = cluster.controller()
    leaders = {p.partition_index: p.leader_id for p in cluster.partitions().values()}
    chosen = [p for p, leader in leaders.items() if (leader == controller) == of_controller]
    if not chosen:
        return "-", 0.0, 0.0
    partition = chosen[0]
    victim = leaders[partition]
    acknowledged = threading.Event()
    size = cluster.log.stat().st_size
    started = time.monotonic()
    wall = time.time()
    os.kill(cluster.pid(victim), signal.SIGKILL)
    came: list[float] = []

    def told(error: Any, _: Any) -> None:
        if error is None and not acknowledged.is_set():
            came.append(time.monotonic())
            acknowledged.set()

    def poll() -> None:
        while not acknowledged.is_set():
            producer.produce(TOPIC, b"x", partition=partition, on_delivery=told)
            producer.poll(CLIENT_S)

    poller = threading.Thread(target=poll)
    poller.start()
    cluster_s = Asker(cluster, partition, victim).writable() - started
    poller.join()
    kind = "active controller" if of_controller else "another broker"
    print(f"{kind:18} cluster {cluster_s:.2f} s  client {came[0] - started:.2f} s", flush=True)
    if trace:
        print(f"  killed broker {victim} at {time.strftime('%H:%M:%S', time.localtime(wall))}")
        with cluster.log.open() as file:
            file.seek(size)
            print("  " + "  ".join(file.readlines()))
    producer.flush(TIMEOUT_S)
    return kind, cluster_s, came[0] - started


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("-o", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    with tempfile.TemporaryDirectory() as scratch:
        cluster = Cluster(pathlib.Path(scratch) / "log", options.o)
        try:
            bootstrap = {"bootstrap.servers": ",".join(cluster.addresses.values()), "log_level": 0}
            admin = AdminClient(bootstrap)
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)
            found: dict[str, list[tuple[float, float]]] = {}
            for turn in range(2 * options.rounds):
                producer = Producer({**bootstrap, "acks": "all"})
                kind, *seconds = measure(cluster, producer, turn % 2 == 0, options.trace)
                found.setdefault(kind, []).append((seconds[0], seconds[1]))
        finally:
            cluster.stop()
    found.pop("-", None)
    for kind, both in found.items():
        for what, times in zip(("cluster", "client"), zip(*both)):
            print(
                f"{kind}, {what}: median {statistics.median(times):.2f} s, at most "
                f"{max(times):.2f} s{'' if max(times) < GOAL_S else ' (goal missed: under 2 s)'}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
