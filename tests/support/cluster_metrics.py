"""What three nodes show of replication at `/metrics`, for nodes of either kind.

Node 1 is the controller, and a broker as 2 and 3 are. A topic is written; then broker 3 stands
still until 2 has taken it out of its replicas in sync, and goes on until it is one of them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypedDict

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from tests.support.metrics import Sample, Scrape, scrape
from tests.support.wire import WireClient, batch_of, produce_request

TOPIC = "replicated"
REPLICAS = ([2, 3], [3, 2], [2, 1])
SETTINGS = {
    "replica.lag.time.max.ms": "4000",
    "broker.session.timeout.ms": "120000",
    "auto.leader.rebalance.enable": "false",
}
PREFIXES = (
    "kafka_cluster_partition_",
    "kafka_controller_",
    "kafka_server_brokertopicmetrics_",
    "kafka_server_raft_metrics_",
    "kafka_server_raftmetrics_",
    "kafka_server_replicafetchermanager_",
    "kafka_server_replicamanager_",
)
REPLICA_MANAGER = "kafka_server_replicamanager_"
SHRINKS, EXPANDS = f"{REPLICA_MANAGER}isrshrinks_total", f"{REPLICA_MANAGER}isrexpands_total"
UNDER_REPLICATED = f"{REPLICA_MANAGER}underreplicatedpartitions"
TRAFFIC = "kafka_server_brokertopicmetrics_"
COMPARED = {
    *(
        REPLICA_MANAGER + name
        for name in (
            "leadercount",
            "partitioncount",
            "underreplicatedpartitions",
            "underminisrpartitioncount",
            "atminisrpartitioncount",
            "offlinereplicacount",
            "reassigningpartitions",
            "isrshrinks_total",
            "isrexpands_total",
            "failedisrupdates_total",
        )
    ),
    *(
        f"{TRAFFIC}{name}_total"
        for name in ("messagesin", "bytesin", "replicationbytesin", "replicationbytesout")
    ),
    *(
        f"kafka_controller_kafkacontroller_{name}"
        for name in (
            "activecontrollercount",
            "activebrokercount",
            "fencedbrokercount",
            "globaltopiccount",
            "globalpartitioncount",
            "offlinepartitionscount",
            "preferredreplicaimbalancecount",
        )
    ),
    *(
        f"kafka_cluster_partition_{name}"
        for name in ("underreplicated", "insyncreplicascount", "replicascount", "atminisr")
    ),
    "kafka_server_raft_metrics_current_leader",
    "kafka_server_raft_metrics_number_of_voters",
    "kafka_server_raft_metrics_number_of_observers",
    "kafka_server_replicafetchermanager_failedpartitionscount",
    "kafka_server_replicafetchermanager_deadthreadcount",
}
"""The metrics whose values do not depend on the time."""
SENT_AGAIN = {f"{TRAFFIC}replicationbytesout_total"}
"""A node that stood still asks again for what was sent to it meanwhile, after a while."""

Value: TypeAlias = tuple[str, list[tuple[str, str]], float]


class OfNode(TypedDict):
    """What a node shows; `types` and `labels` are those at the end."""

    values: list[Value]
    types: dict[str, str]
    labels: dict[str, list[list[str]]]


Told: TypeAlias = "dict[str, dict[str, OfNode]]"
"""By phase and node."""


def measured_cluster(cluster: Cluster, urls: Mapping[int, str]) -> Told:
    """The whole story of a cluster that has started; `urls` are those of its nodes' metrics."""
    nodes = {node_id: WireClient(f"127.0.0.1:{cluster[node_id].port}") for node_id in urls}
    _create(nodes[1])
    wait_for(lambda: _is_in_sync(nodes[1]), "everything in sync")
    for index, count in ((0, 3), (2, 1)):
        for _ in range(count):
            _write(nodes[2], index)
    _write(nodes[3], 1)
    told: Told = {"written": _of_all(urls, UNDER_REPLICATED, 0, is_first=True)}

    cluster[3].pause()
    _write(nodes[2], 0, acks=1)
    running = {node_id: url for node_id, url in urls.items() if node_id != 3}
    wait_for(lambda: _value(urls[2], UNDER_REPLICATED) == 1, "broker 3 is not in sync")
    told["one stands still"] = _of_all(running, SHRINKS, None)
    cluster[3].resume()
    wait_for(lambda: _value(urls[2], EXPANDS) == 1, "broker 3 is in sync again")
    wait_for(lambda: _is_in_sync(nodes[1]), "everything in sync")
    told["it goes on"] = _of_all(urls, UNDER_REPLICATED, 0)
    for node_id, url in urls.items():
        found = _scraped(url)
        of_node = told["it goes on"][str(node_id)]
        of_node["types"] = {name: found.types[name] for name in sorted(found.names())}
        of_node["labels"] = {
            name: [list(each) for each in sorted(_label_sets(found, name))]
            for name in sorted(found.names())
        }
    for client in nodes.values():
        client.close()
    return told


def _create(client: WireClient) -> None:
    shape = m.CreateTopicsRequest
    assignments = [
        shape.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
        for index, replicas in enumerate(REPLICAS)
    ]
    topic = shape.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    answer = client.call(shape(topics=[topic], timeout_ms=30_000), 7)
    assert answer.topics[0].error_code == 0, answer


def _is_in_sync(client: WireClient) -> bool:
    partitions = client.metadata([TOPIC]).topics[0].partitions
    return len(partitions) == len(REPLICAS) and all(
        one.leader_id == one.replica_nodes[0] and sorted(one.isr_nodes) == sorted(one.replica_nodes)
        for one in partitions
    )


def _write(client: WireClient, index: int, acks: int = -1) -> None:
    def is_written() -> bool:
        answer = client.call(produce_request(TOPIC, {index: batch_of([b"a", b"b"])}, acks=acks), 9)
        return bool(answer.responses[0].partition_responses[0].error_code == 0)

    wait_for(is_written, f"partition {index} is written")


def _scraped(url: str) -> Scrape:
    found = scrape(url, as_openmetrics=False)
    values = {key: value for key, value in found.values.items() if key[0].startswith(PREFIXES)}
    return Scrape(found.types, values)


def _value(url: str, name: str) -> float:
    return _scraped(url).value(name)


def _of_all(
    urls: Mapping[int, str], name: str, value: float | None, *, is_first: bool = False
) -> dict[str, OfNode]:
    """The compared values of each node, as soon as two scrapes show the same."""
    found: dict[str, OfNode] = {}
    compared = COMPARED if is_first else COMPARED - SENT_AGAIN
    for node_id, url in urls.items():
        seen: list[dict[Sample, float]] = [{}]

        def is_quiet(url: str = url, seen: list[dict[Sample, float]] = seen) -> bool:
            values = _scraped(url).values
            seen.append({key: one for key, one in values.items() if key[0] in compared})
            is_there = value is None or seen[-1].get((name, frozenset())) == value
            return is_there and seen[-1] == seen[-2]

        wait_for(is_quiet, f"node {node_id} shows the same twice")
        found[str(node_id)] = {
            "values": sorted((key, sorted(labels), one) for (key, labels), one in seen[-1].items()),
            "types": {},
            "labels": {},
        }
    return found


def _label_sets(found: Scrape, name: str) -> set[tuple[str, ...]]:
    return {tuple(sorted(dict(labels))) for shown, labels in found.values if shown == name}
