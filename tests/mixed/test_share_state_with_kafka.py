"""The state of share partitions between kwire and Apache Kafka, over the ordinary protocol.

One coordinates it and the other leads: a share group of the leader's reads, acknowledges and
describes its offsets. And each request of kwire's persister to a coordinator of Kafka's.
"""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.network.buffers import BufferPool
from kwire.network.peer import PeerNetwork
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.share.coordinator_persister import CoordinatorPersister
from kwire.share.keys import SharePartitionKey
from kwire.share.messages import summary_request, summary_results
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    Persister,
    StateBatch,
    WritePartition,
)
from kwire.testing.cluster import Cluster, wait_for
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.kafka_node import KafkaNode
from tests.support.share.member import ACCEPT, Member, set_group_config
from tests.support.wire import WireClient, produce_values

TOPIC, GROUP = "read", "workers"
OFFSETS, STATE = "__consumer_offsets", "__share_group_state"
KWIRE, KAFKA = 1, 2
RECORDS = 10


def create(client: WireClient, name: str, node_id: int, configs: dict[str, str]) -> None:
    """A topic of one partition on one node."""
    shape = m.CreateTopicsRequest
    topic = shape.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[shape.CreatableReplicaAssignment(partition_index=0, broker_ids=[node_id])],
        configs=[shape.CreatableTopicConfig(name=key, value=x) for key, x in configs.items()],
    )
    answer = client.call(shape(topics=[topic], timeout_ms=10_000), 7).topics[0]
    assert answer.error_code == 0, answer
    client.topic(name)


@pytest.mark.parametrize(("leader", "coordinator"), [(KAFKA, KWIRE), (KWIRE, KAFKA)])
def test_one_leads_and_the_other_coordinates(
    tmp_path: pathlib.Path, leader: int, coordinator: int
) -> None:
    kafka_libs()
    kinds = {KAFKA: KafkaNode}
    settings = {
        "min.insync.replicas": 1,
        "broker.session.timeout.ms": 9000,
        # Kafka counts by its settings a topic that was not there when it started.
        "offsets.topic.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
    }
    with Cluster(
        tmp_path, combined=(KWIRE,), brokers=(KAFKA,), kinds=kinds, settings=settings
    ) as cluster:
        cluster.start()
        addresses = {node: f"127.0.0.1:{cluster[node].port}" for node in (KWIRE, KAFKA)}
        coordinates, leads = WireClient(addresses[coordinator]), WireClient(addresses[leader])
        create(leads, STATE, coordinator, {"cleanup.policy": "delete", "min.insync.replicas": "1"})
        create(leads, OFFSETS, leader, {"cleanup.policy": "compact"})
        create(leads, TOPIC, leader, {})
        topic_id = leads.topic_id(TOPIC)
        set_group_config(leads, GROUP, share_auto_offset_reset="earliest")
        member = Member(addresses[leader], GROUP, [TOPIC])
        member.join(1)
        produce_values(leads, TOPIC, 0, [b"%d" % number for number in range(RECORDS)])
        key = (topic_id, 0)
        acquired = member.acquire([key]).responses[0].partitions[0].acquired_records
        assert [(x.first_offset, x.last_offset) for x in acquired] == [(0, RECORDS - 1)]
        said = member.acknowledge({key: [(0, 3, [ACCEPT])]})
        assert said.responses[0].partitions[0].error_code == 0, said
        summary = summary_request(GROUP, [PartitionEpoch(topic_id, 0, -1)])

        def acknowledged() -> int:
            """How many records are done with, by what the coordinator keeps."""
            kept = summary_results(coordinates.call(summary, 1))[0]
            assert kept.error_code == 0, kept
            return kept.start_offset + kept.delivery_complete_count

        wait_for(lambda: acknowledged() == 4, "acknowledgements that are kept")
        refused = summary_results(leads.call(summary, 1))[0]
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert described(leads) in (0, 4)
        for client in (member, coordinates, leads):
            client.close()


def described(client: WireClient) -> int:
    shape = m.DescribeShareGroupOffsetsRequest
    topic = shape.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])
    group = shape.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[topic])
    answer = client.call(shape(groups=[group]), 1).groups[0]
    assert answer.error_code == 0, answer
    return int(answer.topics[0].partitions[0].start_offset)


class OnlyKafka:
    """Kafka's node coordinates everything, once it has answered that it does."""

    node_id = 99

    @property
    def local(self) -> Persister:
        raise AssertionError("this process coordinates nothing")

    def find(self, key: SharePartitionKey) -> int | None:
        return 1


def test_kafka_coordinates_and_kwire_asks(tmp_path: pathlib.Path) -> None:
    settings = {"share.coordinator.state.topic.num.partitions": "3"}
    with running_kafka(tmp_path, settings) as bootstrap:
        client = WireClient(bootstrap)
        client.create_topic(TOPIC, partitions=3)
        topic_id = client.topic_id(TOPIC)
        key = f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0"
        find = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        wait_for(lambda: not client.call(find, 6).coordinators[0].error_code, "a coordinator")
        asyncio.run(asked_of_kafka(bootstrap, topic_id))
        client.close()


async def asked_of_kafka(bootstrap: str, topic_id: bytes) -> None:
    loop = asyncio.get_running_loop()
    host, port = bootstrap.split(":")
    peers = PeerNetwork(
        loop,
        BufferPool(),
        SeededRandom(1),
        resolve=lambda node_id: (host, int(port)),
        controller=lambda: None,
    )
    persister = CoordinatorPersister(
        loop=loop,
        coordinators=OnlyKafka(),
        send=lambda node_id, request: peers.send(node_id, request.API_KEY, request),
        draw=lambda: 0.5,
    )

    async def done(pending: Pending[list[Any]]) -> list[Any]:
        future: asyncio.Future[list[Any]] = loop.create_future()
        pending.add_done_callback(lambda done: future.set_result(done.result()))
        return await future

    every = range(3)
    begun = persister.initialize(GROUP, [InitializePartition(topic_id, x, 1, 5) for x in every])
    assert [x.error_code for x in await done(begun)] == [0, 0, 0]
    batches = [StateBatch(5, 6, 2, 1), StateBatch(7, 9, 0, 2)]
    writes = [
        persister.write(GROUP, [WritePartition(topic_id, x, 1, 0, 5 + x, x, batches)])
        for x in every
    ]
    for write in writes:
        assert [x.error_code for x in await done(write)] == [0]
    read = await done(persister.read(GROUP, [PartitionEpoch(topic_id, x, 3) for x in every]))
    assert [(x.error_code, x.state_epoch, x.start_offset) for x in read] == [
        (0, 1, 5), (0, 1, 6), (0, 1, 7)
    ]  # fmt: skip
    assert list(read[1].state_batches) == [StateBatch(6, 6, 2, 1), StateBatch(7, 9, 0, 2)]
    stale = await done(persister.write(GROUP, [WritePartition(topic_id, 0, 1, 2, 9, 0, [])]))
    assert stale[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    gone = await done(persister.delete(GROUP, [PartitionId(topic_id, 2)]))
    assert gone[0].error_code == 0
    summaries = await done(
        persister.read_summary(GROUP, [PartitionEpoch(topic_id, x, -1) for x in every])
    )
    assert [(x.start_offset, x.leader_epoch, x.delivery_complete_count) for x in summaries] == [
        (5, 3, 0), (6, 3, 1), (-1, 0, -1)
    ]  # fmt: skip
    persister.close()
    peers.close()
