"""The lag of a group that reads partitions which its coordinator does not have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, free_ports, wait_for
from tests.support.metrics import Scrape, scrape
from tests.support.wire import WireClient, batch_of, produce_request

pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

WAIT_S = 60.0
TOPIC, GROUP = "elsewhere", "reading"
LAG, LAG_SECONDS = "kafka_consumergroup_lag", "kafka_consumergroup_lag_seconds"
NODES = (1, 2, 3)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root: Path = tmp_path_factory.mktemp("nodes")
    with Cluster(root, settings={"offsets.topic.replication.factor": "1"}) as cluster:
        for node, port in zip(cluster.brokers, free_ports(len(NODES))):
            node.settings["http.listeners"] = f"http://127.0.0.1:{port}"
        cluster.start()
        yield cluster


def shown(nodes: Cluster) -> list[Scrape]:
    return [scrape(f"{nodes[at].settings['http.listeners']}/metrics") for at in NODES]


def by_partition(scrapes: list[Scrape], name: str) -> dict[str, float]:
    """All of this group's, on all nodes; each stands on one of them, the group's coordinator."""
    found: dict[str, float] = {}
    for one in scrapes:
        for (sample, labels), value in one.values.items():
            told = dict(labels)
            if sample == name and told["group"] == GROUP:
                assert told["partition"] not in found
                found[told["partition"]] = value
    return found


def created(client: WireClient) -> None:
    """A partition on each node, with two records and more."""
    kind = m.CreateTopicsRequest
    assignments = [
        kind.CreatableReplicaAssignment(partition_index=index, broker_ids=[node])
        for index, node in enumerate(NODES)
    ]
    topic = kind.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    answer = client.call(kind(topics=[topic], timeout_ms=30_000), 7)
    assert answer.topics[0].error_code == 0


def produced(nodes: Cluster, index: int, count: int) -> None:
    request = produce_request(TOPIC, {index: batch_of([b"x"] * count)})

    def done() -> bool:
        with WireClient(nodes[NODES[index]].bootstrap) as client:
            answer = client.call(request, 9)
        return bool(answer.responses[0].partition_responses[0].error_code == 0)

    wait_for(done, "it is written", WAIT_S)


def committed(nodes: Cluster, offset: int) -> bool:
    kind = m.OffsetCommitRequest
    partitions = [
        kind.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index in range(len(NODES))
    ]
    request = kind(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[kind.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
    )
    with WireClient(nodes[1].bootstrap) as client:
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        node_id = client.call(find, 4).coordinators[0].node_id
    if node_id < 0:
        return False
    with WireClient(nodes[node_id].bootstrap) as client:
        answer = client.call(request, 8)
    return not any(one.error_code for one in answer.topics[0].partitions)


def test_lag_is_told_wherever_the_partition_is(nodes: Cluster) -> None:
    with WireClient(nodes[1].bootstrap) as client:
        created(client)
    for index in range(len(NODES)):
        produced(nodes, index, 2 + index)
    wait_for(lambda: committed(nodes, 1), "it is committed", WAIT_S)
    expected = {"0": 1.0, "1": 2.0, "2": 3.0}
    wait_for(lambda: by_partition(shown(nodes), LAG) == expected, "the lag of all", WAIT_S)
    assert by_partition(shown(nodes), LAG_SECONDS).keys() == expected.keys()
    wait_for(lambda: committed(nodes, 4), "it is committed", WAIT_S)
    found = shown(nodes)
    assert by_partition(found, LAG) == {"0": 0.0, "1": 0.0, "2": 0.0}
    assert by_partition(found, LAG_SECONDS) == {"0": 0.0, "1": 0.0, "2": 0.0}


def test_a_node_that_is_gone_costs_the_others_nothing(nodes: Cluster) -> None:
    nodes[3].kill()
    live = [at for at in NODES if at != 3]
    for at in live:
        found = scrape(f"{nodes[at].settings['http.listeners']}/metrics")
        assert found.value("kafka_server_kafkaserver_brokerstate") == 3
    nodes[3].start()
    nodes[3].wait_ready()
