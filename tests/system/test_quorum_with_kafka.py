"""One quorum of two kwire controllers and an Apache Kafka one survives the loss of any of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SystemClock, SystemRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.protocol import frame, records, uuids
from kwire.protocol import messages as m
from kwire.testing.cluster import free_adjacent_ports
from tests.support.kafka import ROOT, RUN, kafka_libs

CLUSTER_ID = "a3dpcmUtcGVlci1rYWZrYQ"
KAFKA, KWIRE = 1, (2, 3)
WAIT_S = 40


class Quorum:
    """Three formatted directories and the processes on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.libs = kafka_libs()
        self.kafka_port = free_adjacent_ports()
        self.ports = {KAFKA: self.kafka_port + 1, **{node: free_adjacent_ports() for node in KWIRE}}
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.committed = 0
        random = SystemRandom()
        initial = ",".join(
            f"{node}@127.0.0.1:{port}:{uuids.to_text(uuids.random_uuid(random))}"
            for node, port in self.ports.items()
        )
        for node in self.ports:
            directory = self.directory(node)
            directory.parent.mkdir(parents=True, exist_ok=True)
            format_directories(
                FormatOptions(
                    CLUSTER_ID,
                    node,
                    [str(directory)],
                    str(directory),
                    initial_controllers=initial,
                ),
                clock=SystemClock(),
                random=random,
            )

    def directory(self, node: int) -> Path:
        # Where run-kafka.sh keeps the data of its first node.
        return self.root / "kafka" / "node-1" / "data" if node == KAFKA else self.root / str(node)

    def start(self, node: int) -> None:
        if node == KAFKA:
            listener = f"CONTROLLER://127.0.0.1:{self.ports[KAFKA]}"
            properties = {
                "process.roles": "controller",
                "listeners": listener,
                "advertised.listeners": listener,
                "controller.quorum.bootstrap.servers": self.servers,
            }
            command: list[Any] = [RUN, "start", "--libs", self.libs, "--dir", self.root / "kafka"]
            command += ["--port", str(self.kafka_port)]
            for name, value in properties.items():
                command += ["--prop", f"{name}={value}"]
            environment = {**os.environ, "JIT_LEVEL": "1"}
            subprocess.run(command, env=environment, timeout=120, check=True, capture_output=True)
            return
        output = (self.root / f"{node}.log").open("ab")
        self.processes[node] = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.quorum_node",
                str(self.directory(node)),
                str(node),
                str(self.ports[node]),
                self.servers,
            ],
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
        output.close()

    def kill(self, node: int) -> None:
        if node == KAFKA:
            command = [RUN, "stop", "--dir", self.root / "kafka", "--kill"]
            subprocess.run(command, timeout=60, check=False)
        else:
            process = self.processes.pop(node)
            process.kill()
            process.wait(30)

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(30)
        self.processes.clear()
        command = [RUN, "stop", "--dir", self.root / "kafka"]
        subprocess.run(command, timeout=90, check=False)

    def describe(self, node: int) -> Any | None:
        """The partition of DescribeQuorum, None from a node that is down or does not lead."""
        request = m.DescribeQuorumRequest
        entry = request.PartitionData(partition_index=0)
        topic = request.TopicData(topic_name="__cluster_metadata", partitions=[entry])
        parts = frame.encode_request(request.API_KEY, 2, 1, "test", request(topics=[topic]))
        try:
            with socket.create_connection(("127.0.0.1", self.ports[node]), 5) as connection:
                connection.sendall(b"".join(map(bytes, parts)))
                data = b""
                while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                    piece = connection.recv(65536)
                    if not piece:
                        return None
                    data += piece
        except OSError:
            return None
        response = frame.decode_response(request.API_KEY, 2, memoryview(data)[4:])[1]
        partition = response.topics[0].partitions[0]
        return None if partition.error_code else partition

    def leader(self) -> tuple[int, Any] | None:
        found = [(node, p) for node in self.ports if (p := self.describe(node)) is not None]
        return max(found, key=lambda pair: pair[1].leader_epoch) if found else None

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + WAIT_S
        while True:
            result = condition()
            if result:
                return result
            if time.monotonic() > end:
                logs = "".join((self.root / f"{node}.log").read_text() for node in KWIRE)
                pytest.fail(f"{what} did not happen in {WAIT_S} s\n{logs[-3000:]}")
            time.sleep(0.05)

    def wait_commits(self, without: int | None = None) -> tuple[int, int]:
        """Wait for a leader whose high watermark moves on with the voters that run all close
        behind; its id and epoch."""

        def leads() -> Any:
            found = self.leader()
            return found if found is not None and found[0] != without else None

        node, first = self.wait(leads, f"a leader without node {without}")

        def moved() -> bool:
            now = self.describe(node)
            if now is None or now.high_watermark <= max(first.high_watermark, 0) + 1:
                return False
            ends = [v.log_end_offset for v in now.current_voters if v.replica_id != without]
            self.committed = max(self.committed, first.high_watermark)
            return min(ends) >= first.high_watermark

        self.wait(moved, f"a commit by leader {node}")
        return node, first.leader_epoch


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    quorum = Quorum(tmp_path)
    try:
        yield quorum
    finally:
        quorum.stop()


def test_the_loss_of_any_one(quorum: Quorum) -> None:
    for node in (*KWIRE, KAFKA):
        quorum.start(node)
    leader, epoch = quorum.wait_commits()
    leaders = {leader}
    victims = [leader, *(node for node in quorum.ports if node != leader)]
    for victim in victims:
        quorum.kill(victim)
        leader, after = quorum.wait_commits(without=victim)
        leaders.add(leader)
        assert after >= epoch
        epoch = after
        quorum.start(victim)
        quorum.wait_commits()
    assert len(leaders) > 1
    quorum.stop()
    logs = [committed(quorum.directory(node)) for node in quorum.ports]
    assert quorum.committed > 10
    for offset in range(quorum.committed):
        batches = {log.get(offset) for log in logs}
        assert len(batches) == 1, f"the logs differ at {offset}"


def committed(directory: Path) -> dict[int, bytes | None]:
    """Base offset -> batch, of a metadata log that nobody has open; None inside of a batch."""
    log = MetadataLog.open(str(directory), metadata_log_config(), SystemClock())
    found: dict[int, bytes | None] = {}
    for data in log.read_chunks(log.log.log_start_offset, log.log.log_end_offset):
        for position, header in records.iterate_headers(data):
            found[header.base_offset] = bytes(data[position : position + header.size_bytes])
    log.close()
    return found
