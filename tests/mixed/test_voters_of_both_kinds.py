"""A quorum of kwire and Apache Kafka controllers becomes dynamic (KIP-853), and changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.kafka import kafka_libs
from tests.support.kafka_node import KafkaNode
from tests.support.wire import WireClient

KWIRE, KAFKA = (1, 2), 3
NODES = (*KWIRE, KAFKA)
NOT_YET = (3, 5, 41, 42, 44, 109, 7)
"""Answers that a moment later are others: metadata or leader on their way, a change under way."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    kafka_libs()
    settings = {"broker.session.timeout.ms": 9000, "min.insync.replicas": 1}
    with Cluster(
        tmp_path,
        combined=NODES,
        kinds={KAFKA: KafkaNode},
        settings=settings,
        static_voters=True,
    ) as cluster:
        cluster.start()
        yield cluster


def call(cluster: Cluster, node: int, request: Any, version: int) -> Any:
    with WireClient(f"127.0.0.1:{cluster[node].port}") as client:
        return client.call(request, version)


def quorum(cluster: Cluster, node: int) -> Any:
    """The partition of DescribeQuorum, as this broker hears it of the leader."""
    request = m.DescribeQuorumRequest
    entry = request.PartitionData(partition_index=0)
    topic = request.TopicData(topic_name="__cluster_metadata", partitions=[entry])
    return call(cluster, node, request(topics=[topic]), 2).topics[0].partitions[0]


def voters(cluster: Cluster, node: int) -> dict[int, bytes]:
    """Id -> directory id of the present voters; {} while nobody says."""
    partition = quorum(cluster, node)
    if partition.error_code:
        return {}
    return {v.replica_id: bytes(v.replica_directory_id) for v in partition.current_voters}


def upgrade(cluster: Cluster, node: int) -> None:
    request = m.UpdateFeaturesRequest
    update = request.FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)

    def is_upgraded() -> bool:
        answer = call(cluster, node, request(timeout_ms=10_000, feature_updates=[update]), 2)
        # Voters tell a new leader what they support, each with its first fetches.
        told = "not all of the voters support it" not in (answer.error_message or "")
        assert answer.error_code == 0 or not told, answer
        return bool(answer.error_code == 0)

    wait_for(is_upgraded, "kraft.version 1")


def remove(cluster: Cluster, node: int, voter: int, directory: bytes) -> None:
    request = m.RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter, voter_directory_id=directory
    )

    def removed() -> bool:
        code = call(cluster, node, request, 0).error_code
        assert code in (0, *NOT_YET), code
        return code == 0

    wait_for(removed, f"voter {voter} removed")


def add(cluster: Cluster, node: int, voter: int, directory: bytes) -> None:
    message = m.AddRaftVoterRequest
    listener = message.Listener(
        name="CONTROLLER", host="127.0.0.1", port=cluster[voter].controller_port
    )
    request = message(
        cluster_id=None,
        timeout_ms=10_000,
        voter_id=voter,
        voter_directory_id=directory,
        listeners=[listener],
    )

    def added() -> bool:
        code = call(cluster, node, request, 0).error_code
        assert code in (0, *NOT_YET), code
        return code == 0

    wait_for(added, f"voter {voter} added")


def create(cluster: Cluster, node: int, name: str) -> None:
    request = m.CreateTopicsRequest
    topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    answer = call(cluster, node, request(topics=[topic], timeout_ms=10_000), 5)
    assert answer.topics[0].error_code == 0, answer


def test_kraft_version_is_raised_and_voters_come_and_go(cluster: Cluster) -> None:
    static = wait_for(lambda: voters(cluster, 1), "a quorum")
    assert set(static) == set(NODES)
    assert set(static.values()) == {bytes(16)}, "static voters have no directories"
    upgrade(cluster, KAFKA)
    for node in NODES:
        wait_for(lambda n=node: all(map(any, voters(cluster, n).values())), "directories of voters")
    directories = voters(cluster, 1)
    for voter in (KAFKA, 2, 1):
        asked = next(node for node in NODES if node != voter)
        remove(cluster, asked, voter, directories[voter])
        others = set(NODES) - {voter}
        for node in NODES:
            wait_for(lambda n=node, o=others: set(voters(cluster, n)) == o, f"without {voter}")
        create(cluster, asked, f"without-{voter}")
        add(cluster, asked, voter, directories[voter])
        for node in NODES:
            wait_for(lambda n=node: voters(cluster, n) == directories, f"{voter} again")
    for victim in NODES:
        # Each majority is one: also without the nodes that had been removed.
        cluster[victim].kill()
        asked = next(node for node in NODES if node != victim)
        wait_for(
            lambda a=asked, v=victim: quorum(cluster, a).leader_id not in (-1, v), "another leader"
        )
        cluster[victim].start()
        cluster[victim].wait_ready()
