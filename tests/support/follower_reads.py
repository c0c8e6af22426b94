"""What a leader (node 1, rack r1) and a follower (node 2, rack r2) answer to consumers.

The same questions go to kwire and to Apache Kafka leaders; `EXPECTED` was measured on Apache Kafka
4.4. Answers are (error code, high watermark, log start, preferred replica, bytes of records).
"""

from __future__ import annotations

from typing import Any

from kwire.protocol import messages as m
from kwire.testing.cluster import Cluster, wait_for
from kwire.testing.simulation.client import batch_of
from tests.support.wire import WireClient

TOPIC = "read"
SETTINGS = {
    "min.insync.replicas": 2,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
EXPECTED = {
    "leader, from the other rack": (0, 1, 0, 2, 0),
    "leader, from its rack": (0, 1, 0, -1, 69),
    "leader, from nowhere": (0, 1, 0, -1, 69),
    "leader, before KIP-392": (0, 1, 0, -1, 69),
    "leader, at its end from the other rack": (0, 1, 0, 2, 0),
    "leader, beyond its end from the other rack": (1, -1, -1, -1, 0),
    "follower": (0, 1, 0, -1, 69),
    "follower, before KIP-392": (6, -1, -1, -1, 0),
    "follower, beyond its end": (1, -1, -1, -1, 0),
    "follower, at an epoch to come": (75, -1, -1, -1, 0),
    "follower's ListOffsets": (6, -1),
    "acks=1 below min.insync.replicas": (0, 1),
    "acks=all below min.insync.replicas": (19, -1),
    "high watermark below min.insync.replicas": (0, 1),
}


def call(cluster: Cluster, node: int, request: Any, version: int) -> Any:
    with WireClient(f"127.0.0.1:{cluster[node].port}") as client:
        return client.call(request, version)


def produce(cluster: Cluster, acks: int) -> tuple[int, int]:
    shape = m.ProduceRequest
    data = shape.PartitionProduceData(index=0, records=batch_of([b"v"]))
    topic = shape.TopicProduceData(name=TOPIC, partition_data=[data])
    answer = call(cluster, 1, shape(acks=acks, timeout_ms=3000, topic_data=[topic]), 9)
    found = answer.responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def latest(cluster: Cluster, node: int) -> tuple[int, int]:
    shape = m.ListOffsetsRequest
    asked = shape.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = shape.ListOffsetsTopic(name=TOPIC, partitions=[asked])
    answer = call(cluster, node, shape(replica_id=-1, topics=[topic]), 5)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


def fetch(
    cluster: Cluster, node: int, offset: int, rack: str = "", version: int = 11, epoch: int = -1
) -> tuple[int, ...]:
    shape = m.FetchRequest
    asked = shape.FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=3000
    )
    topic = shape.FetchTopic(topic=TOPIC, partitions=[asked])
    request = shape(max_wait_ms=50, min_bytes=1, max_bytes=10_000, rack_id=rack, topics=[topic])
    found = call(cluster, node, request, version).responses[0].partitions[0]
    return (
        found.error_code,
        found.high_watermark,
        found.log_start_offset,
        found.preferred_read_replica,
        len(found.records or b""),
    )


def in_sync(cluster: Cluster) -> int:
    shape = m.MetadataRequest
    request = shape(topics=[shape.MetadataRequestTopic(name=TOPIC)])
    topic = call(cluster, 1, request, 9).topics[0]
    return len(topic.partitions[0].isr_nodes) if topic.partitions else 0


def answers(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """Ask everything; node 2 is killed on the way."""
    shape = m.CreateTopicsRequest
    placed = shape.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
    topic = shape.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[placed]
    )
    created = call(cluster, 1, shape(topics=[topic], timeout_ms=5000), 5)
    assert created.topics[0].error_code == 0, created
    wait_for(lambda: in_sync(cluster) == 2, "both replicas in sync")
    assert produce(cluster, -1) == (0, 0)
    wait_for(lambda: fetch(cluster, 2, 0)[1] == 1, "the follower knows the high watermark")
    found: dict[str, tuple[int, ...]] = {
        "leader, from the other rack": fetch(cluster, 1, 0, "r2"),
        "leader, from its rack": fetch(cluster, 1, 0, "r1"),
        "leader, from nowhere": fetch(cluster, 1, 0, "r9"),
        "leader, before KIP-392": fetch(cluster, 1, 0, version=10),
        "leader, at its end from the other rack": fetch(cluster, 1, 1, "r2"),
        "leader, beyond its end from the other rack": fetch(cluster, 1, 5, "r2"),
        "follower": fetch(cluster, 2, 0),
        "follower, before KIP-392": fetch(cluster, 2, 0, version=10),
        "follower, beyond its end": fetch(cluster, 2, 7),
        "follower, at an epoch to come": fetch(cluster, 2, 0, epoch=99),
        "follower's ListOffsets": latest(cluster, 2),
    }
    cluster[2].kill()
    wait_for(lambda: in_sync(cluster) == 1, "the killed replica out of the ISR")
    found["acks=1 below min.insync.replicas"] = produce(cluster, 1)
    found["acks=all below min.insync.replicas"] = produce(cluster, -1)
    found["high watermark below min.insync.replicas"] = latest(cluster, 1)
    return found
