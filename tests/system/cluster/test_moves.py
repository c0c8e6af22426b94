"""Three real nodes: moves under a throttle, elections, hints, leftovers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Cluster, KwireNode, wait_for
from tests.support.wire import WireClient, batch_of, produce_request, produce_values

TOPIC, BROKER = 2, 4
SET = 0
NO_REASSIGNMENT = int(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("moves")
    with Cluster(root, settings={"min.insync.replicas": 1}) as cluster:
        cluster.start()
        yield cluster


def client(cluster: Cluster, node: int = 1) -> WireClient:
    return WireClient(f"127.0.0.1:{cluster[node].port}")


def call(cluster: Cluster, request: Any, version: int, node: int = 1) -> Any:
    with client(cluster, node) as one:
        return one.call(request, version)


def create(
    cluster: Cluster,
    name: str,
    assigned: Mapping[int, list[int]],
    configs: Mapping[str, str] | None = None,
) -> None:
    """A topic with these replicas of its partitions, known to every node that runs."""
    request = m.CreateTopicsRequest
    topic = request.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in assigned.items()
        ],
        configs=[
            request.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
    )
    answer = call(cluster, request(topics=[topic], timeout_ms=10_000), 5)
    assert answer.topics[0].error_code == 0, answer
    for node in cluster:
        wait_for(lambda n=node.node_id: partitions(cluster, name, n), f"{name} at every node")


def partitions(cluster: Cluster, topic: str, node: int = 1) -> dict[int, Any]:
    """Index -> what this node says of the partition; {} for a topic that is not there."""
    with client(cluster, node) as one:
        found = one.metadata([topic]).topics[0]
    return {p.partition_index: p for p in found.partitions}


def configure(
    cluster: Cluster, kind: int, name: str, values: Mapping[str, str], node: int = 1
) -> None:
    request = m.IncrementalAlterConfigsRequest
    resource = request.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            request.AlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in values.items()
        ],
    )
    answer = call(cluster, request(resources=[resource]), 1, node)
    assert answer.responses[0].error_code == 0, answer


def reassign(cluster: Cluster, topic: str, wanted: Mapping[int, list[int] | None]) -> list[int]:
    """Ask for other replicas (None: cancel); the error code of each partition."""
    request = m.AlterPartitionReassignmentsRequest
    entries = [
        request.ReassignablePartition(partition_index=index, replicas=replicas)
        for index, replicas in wanted.items()
    ]
    topics = [request.ReassignableTopic(name=topic, partitions=entries)]
    answer = call(cluster, request(topics=topics, timeout_ms=10_000), 0)
    assert answer.error_code == 0, answer
    return [int(p.error_code) for p in answer.responses[0].partitions]


def under_way(cluster: Cluster) -> dict[tuple[str, int], tuple[list[int], list[int]]]:
    """(topic, partition) -> (replicas that are added, that are removed)."""
    answer = call(cluster, m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=10_000), 0)
    return {
        (topic.name, p.partition_index): (list(p.adding_replicas), list(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    }


def replicated_on(cluster: Cluster, topic: str, index: int, replicas: list[int]) -> None:
    wait_for(
        lambda: list(partitions(cluster, topic)[index].replica_nodes) == replicas,
        f"{topic}-{index} on {replicas}",
    )


def throttle(cluster: Cluster, bytes_a_second: int) -> None:
    for node in cluster:
        values = {
            f"{side}.replication.throttled.rate": str(bytes_a_second)
            for side in ("leader", "follower")
        }
        configure(cluster, BROKER, str(node.node_id), values, node.node_id)


def test_a_throttled_move_waits_is_cancelled_and_made_again(cluster: Cluster) -> None:
    create(cluster, "moved", {0: [1], 1: [1]})
    with client(cluster) as one:
        produce_values(one, "moved", 1, [b"little"])
        for _ in range(4):  # more than one fetch: a quota is exceeded before it holds back
            produce_values(one, "moved", 0, [bytes(900_000)])
    # Partition 0 is throttled, 1 is not: that 1 is done says that there was time for 0.
    names = {f"{side}.replication.throttled.replicas": "0:1,0:2" for side in ("leader", "follower")}
    configure(cluster, TOPIC, "moved", names)
    throttle(cluster, 1)
    assert reassign(cluster, "moved", {0: [2], 1: [2]}) == [0, 0]
    wait_for(lambda: ("moved", 1) not in under_way(cluster), "the move that is not throttled")
    replicated_on(cluster, "moved", 1, [2])
    assert under_way(cluster) == {("moved", 0): ([2], [1])}
    assert reassign(cluster, "moved", {0: None, 1: None}) == [0, NO_REASSIGNMENT]
    wait_for(lambda: not under_way(cluster), "the end of the cancelled move")
    replicated_on(cluster, "moved", 0, [1])
    wait_for(lambda: not (cluster[2].data / "moved-0").exists(), "the copy that was begun gone")
    throttle(cluster, 1 << 40)
    assert reassign(cluster, "moved", {0: [2]}) == [0]
    wait_for(lambda: not under_way(cluster), "the move")
    replicated_on(cluster, "moved", 0, [2])
    wait_for(lambda: not list(cluster[1].data.glob("moved-?")), "what was moved away gone")
    assert reassign(cluster, "moved", {0: [2, 9]}) == [int(ErrorCode.INVALID_REPLICA_ASSIGNMENT)]


def test_errors_tell_who_leads_and_where(cluster: Cluster) -> None:
    """KIP-951."""
    create(cluster, "hints", {0: [2]})
    produce = produce_request("hints", {0: batch_of([b"x"])})
    answer = call(cluster, produce, 10, node=1)
    told = answer.responses[0].partition_responses[0]
    assert told.error_code == int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 0)
    assert [(n.node_id, n.port) for n in answer.node_endpoints] == [(2, cluster[2].port)]
    with client(cluster) as one:
        topic_id = one.topic_id("hints")
    fetch = m.FetchRequest
    entry = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    asked = fetch(max_wait_ms=0, topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[entry])])
    answer = call(cluster, asked, 16, node=3)
    fetched = answer.responses[0].partitions[0]
    assert fetched.error_code == int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (fetched.current_leader.leader_id, fetched.current_leader.leader_epoch) == (2, 0)
    assert [(n.node_id, n.port) for n in answer.node_endpoints] == [(2, cluster[2].port)]


def leads(cluster: Cluster, topic: str, leader: int) -> None:
    wait_for(lambda: partitions(cluster, topic)[0].leader_id == leader, f"{topic} led by {leader}")


def test_who_lags_leads_only_where_that_is_allowed(cluster: Cluster) -> None:
    """unclean.leader.election.enable: what only the failed leader had is lost, or waited for."""
    unclean = {"unclean.leader.election.enable": "true"}
    create(cluster, "unclean", {0: [3, 2]}, unclean)
    create(cluster, "clean", {0: [3, 2]})
    cluster[2].kill()
    for topic in ("unclean", "clean"):
        wait_for(
            lambda t=topic: list(partitions(cluster, t)[0].isr_nodes) == [3], f"{topic} without 2"
        )
        with client(cluster, 3) as one:
            produce_values(one, topic, 0, [b"only at 3"])
    cluster[3].kill()
    cluster[2].start()
    cluster[2].wait_ready()
    leads(cluster, "unclean", 2)
    assert partitions(cluster, "clean")[0].leader_id == -1
    with client(cluster, 2) as one:
        assert produce_values(one, "unclean", 0, [b"instead"]) == 0
    cluster[3].start()
    cluster[3].wait_ready()
    leads(cluster, "clean", 3)
    with client(cluster, 3) as one:
        assert produce_values(one, "clean", 0, [b"behind"]) == 1


def test_a_topic_deleted_meanwhile_is_set_aside(cluster: Cluster) -> None:
    create(cluster, "gone", {0: [2, 3]})
    cluster[3].kill()
    answer = call(cluster, m.DeleteTopicsRequest(topic_names=["gone"], timeout_ms=10_000), 5)
    assert answer.responses[0].error_code == 0
    assert (cluster[3].data / "gone-0").exists()
    cluster[3].start()
    cluster[3].wait_ready()
    wait_for(lambda: not (cluster[3].data / "gone-0").exists(), "the leftover set aside")
    assert [path.name[:7] for path in cluster[3].data.glob("gone-0*stray")] == ["gone-0."]
    create(cluster, "gone", {0: [3]})
    with client(cluster, 3) as one:
        assert produce_values(one, "gone", 0, [b"new"]) == 0


def test_a_broker_that_nobody_registers_ends_in_one_line(tmp_path: Path) -> None:
    """initial.broker.registration.timeout.ms."""
    settings = {"initial.broker.registration.timeout.ms": 500}
    with Cluster(tmp_path, combined=(1,), brokers=(4,), settings=settings) as cluster:
        lonely = cluster[4]
        lonely.start()  # its controller is not
        assert isinstance(lonely, KwireNode)
        assert lonely.process.wait() == 1
        assert "waited 500 ms for an active controller" in lonely.log_text()
        assert "Traceback" not in lonely.log_text()
