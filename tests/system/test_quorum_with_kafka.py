"""One quorum of two kwire controllers and an Apache Kafka one survives the loss of any of them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SystemClock
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.protocol import frame, records
from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, KwireNode, wait_for
from tests.support.kafka import ROOT, kafka_libs
from tests.support.kafka_node import KafkaNode

KAFKA, KWIRE = 1, (2, 3)
WAIT_S = 40


class QuorumNode(KwireNode):
    """A controller and nothing else, as a process of `tests/support/quorum_node.py`."""

    def start(self) -> None:
        servers = self.settings["controller.quorum.bootstrap.servers"]
        module = [sys.executable, "-m", "tests.support.quorum_node"]
        place = [str(self.data), str(self.node_id), str(self.controller_port), servers]
        self.process.start([*module, *place], cwd=ROOT)

    def wait_ready(self) -> None:
        """It is ready when the quorum is: that is asked for."""


class Quorum:
    """Three formatted directories and the processes on them."""

    def __init__(self, root: Path) -> None:
        kafka_libs()
        self.cluster = Cluster(
            root,
            combined=(),
            controllers=(KAFKA, *KWIRE),
            kinds={KAFKA: KafkaNode, **dict.fromkeys(KWIRE, QuorumNode)},
            fast=False,
        )
        self.nodes = [node.node_id for node in self.cluster]
        self.committed = 0

    def start(self, node: int) -> None:
        self.cluster[node].start()
        self.cluster[node].wait_ready()

    def kill(self, node: int) -> None:
        self.cluster[node].kill()

    def stop(self) -> None:
        self.cluster.stop()

    def describe(self, node: int) -> Any | None:
        """The partition of DescribeQuorum, None from a node that is down or does not lead."""
        request = m.DescribeQuorumRequest
        entry = request.PartitionData(partition_index=0)
        topic = request.TopicData(topic_name="__cluster_metadata", partitions=[entry])
        parts = frame.encode_request(request.API_KEY, 2, 1, "test", request(topics=[topic]))
        try:
            address = ("127.0.0.1", self.cluster[node].controller_port)
            with socket.create_connection(address, 5) as connection:
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
        found = [(node, p) for node in self.nodes if (p := self.describe(node)) is not None]
        return max(found, key=lambda pair: pair[1].leader_epoch) if found else None

    def wait_commits(self, without: int | None = None) -> tuple[int, int]:
        """Wait for a leader whose high watermark moves on with the voters that run all close
        behind; its id and epoch."""

        def leads() -> Any:
            found = self.leader()
            return found if found is not None and found[0] != without else None

        node, first = wait_for(leads, f"a leader without node {without}", WAIT_S)

        def moved() -> bool:
            now = self.describe(node)
            if now is None or now.high_watermark <= max(first.high_watermark, 0) + 1:
                return False
            ends = [v.log_end_offset for v in now.current_voters if v.replica_id != without]
            self.committed = max(self.committed, first.high_watermark)
            return bool(min(ends) >= first.high_watermark)

        wait_for(moved, f"a commit by leader {node}", WAIT_S)
        return node, first.leader_epoch


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    quorum = Quorum(tmp_path)
    with quorum.cluster:
        yield quorum


def test_the_loss_of_any_one(quorum: Quorum) -> None:
    for node in (*KWIRE, KAFKA):
        quorum.start(node)
    leader, epoch = quorum.wait_commits()
    leaders = {leader}
    victims = [leader, *(node for node in quorum.nodes if node != leader)]
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
    logs = [committed(node.data) for node in quorum.cluster]
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
