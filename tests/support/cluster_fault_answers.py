"""Failures that take two brokers, brought about for real, so that an answer of `kwire/faults` can
be laid beside the real one: `python -m tests.support.cluster_fault_answers` records Apache Kafka's.

Broker 1 is asked for what broker 2 leads and coordinates; then broker 2 is stopped (SIGSTOP) while
broker 1 waits for it.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import NamedTuple

from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from kwire.protocol.structs import Message, Struct
from kwire.testing.cluster import Cluster
from tests.support.fault_answers import shown
from tests.support.kafka_node import KafkaNode
from tests.support.wire import WireClient

DATA = pathlib.Path(__file__).parents[1] / "golden/data/cluster_fault_answers.json"
ASKED, OTHER = 1, 2
LAG_MS = 4000
SETTINGS = {
    "replica.lag.time.max.ms": LAG_MS,
    "broker.heartbeat.interval.ms": 2000,  # a JVM that starts takes its time
    "broker.session.timeout.ms": 60_000,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
ELSEWHERE, HERE = "elsewhere", "here"
NOT_HERE = "not-here"
"""Broker 1 has no replica of it: from version 11 on a Fetch may be answered by a follower."""
GROUP, TRANSACTIONAL_ID = "billing", "payer"
MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
GROUP_KEY, TRANSACTION_KEY = 0, 1
TOPIC_ID = b"id of the topic."
"""Stands in requests and recorded answers for that of NOT_HERE, which is drawn."""
FIRST_PORT = 9091
"""Ports are drawn too: that of broker 1 is recorded as this one, of broker 2 as the next."""


class Failing(NamedTuple):
    """A request at some versions; `after`: what it asks for has been done when it fails."""

    label: str
    request: Message
    versions: tuple[int, ...]
    after: bool = False


def produce(topic: str, timeout_ms: int = 1000, topic_id: bytes = bytes(16)) -> m.ProduceRequest:
    """One record, to be had by all replicas."""
    shape = m.ProduceRequest
    batch = bytes(build_batch([Record(timestamp=0, value=b"v")]))
    data = [shape.PartitionProduceData(index=0, records=batch)]
    named = shape.TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)
    return shape(acks=-1, timeout_ms=timeout_ms, topic_data=[named])


def requests() -> list[Failing]:
    """What a broker refuses that neither leads nor coordinates."""
    return [
        *_to_leaders(),
        *_to_leaders_of_share_groups(),
        *to_groups(GROUP),
        *to_transactions(GROUP, TRANSACTIONAL_ID),
    ]


def _to_leaders() -> list[Failing]:
    fetch, offsets = m.FetchRequest, m.ListOffsetsRequest
    epochs, records = m.OffsetForLeaderEpochRequest, m.DeleteRecordsRequest
    fetched = fetch.FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=-1, partition_max_bytes=1000
    )
    listed = offsets.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    asked = epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
    deleted = records.DeleteRecordsPartition(partition_index=0, offset=0)
    return [
        Failing("produce", produce(ELSEWHERE), (3, 9, 10, 12)),
        Failing("produce by topic id", produce("", topic_id=TOPIC_ID), (13,)),
        Failing(
            "fetch",
            fetch(
                max_wait_ms=0,
                max_bytes=1000,
                session_epoch=-1,
                topics=[fetch.FetchTopic(topic=ELSEWHERE, partitions=[fetched])],
            ),
            (4, 10),
        ),
        Failing(
            "fetch of a consumer that may read from followers",
            fetch(
                max_wait_ms=0,
                max_bytes=1000,
                session_epoch=-1,
                topics=[fetch.FetchTopic(topic=NOT_HERE, partitions=[fetched])],
            ),
            (11, 12),
        ),
        Failing(
            "fetch by topic id",
            fetch(
                max_wait_ms=0,
                max_bytes=1000,
                session_epoch=-1,
                topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[fetched])],
            ),
            (13, 16, 18),
        ),
        Failing(
            "offsets",
            offsets(
                replica_id=-1,
                topics=[offsets.ListOffsetsTopic(name=ELSEWHERE, partitions=[listed])],
            ),
            (1, 4, 7),
        ),
        Failing(
            "epochs",
            epochs(
                replica_id=-1,
                topics=[epochs.OffsetForLeaderTopic(topic=ELSEWHERE, partitions=[asked])],
            ),
            (3, 4),
        ),
        Failing(
            "records deleted",
            records(
                timeout_ms=1000,
                topics=[records.DeleteRecordsTopic(name=ELSEWHERE, partitions=[deleted])],
            ),
            (1, 2),
        ),
    ]


def _to_leaders_of_share_groups() -> list[Failing]:
    fetch = m.ShareFetchRequest
    fetched = fetch.FetchPartition(partition_index=0)
    return [
        Failing(
            "share fetch",
            fetch(
                group_id=GROUP,
                member_id=MEMBER_ID,
                share_session_epoch=0,
                max_wait_ms=0,
                max_bytes=1000,
                max_records=10,
                batch_size=10,
                topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[fetched])],
            ),
            (1,),
        ),
    ]


def to_groups(group: str) -> list[Failing]:
    commit, offsets = m.OffsetCommitRequest, m.OffsetFetchRequest
    delete = m.OffsetDeleteRequest
    committed = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    of_topic = offsets.OffsetFetchRequestTopic(name=HERE, partition_indexes=[0])
    of_topics = offsets.OffsetFetchRequestTopics(name=HERE, partition_indexes=[0])
    join = m.JoinGroupRequest
    deleted = delete.OffsetDeleteRequestPartition(partition_index=0)
    return [
        Failing(
            "commit",
            commit(
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[commit.OffsetCommitRequestTopic(name=HERE, partitions=[committed])],
            ),
            (2, 8, 9),
        ),
        Failing("offsets of a group", offsets(group_id=group, topics=[of_topic]), (1, 2, 6)),
        Failing(
            "offsets of groups",
            offsets(groups=[offsets.OffsetFetchRequestGroup(group_id=group, topics=[of_topics])]),
            (8, 9),
        ),
        Failing(
            "join",
            join(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[join.JoinGroupRequestProtocol(name="range")],
            ),
            (2, 6, 9),
        ),
        Failing(
            "heartbeat",
            m.HeartbeatRequest(group_id=group, member_id="one", generation_id=1),
            (0, 4),
        ),
        Failing(
            "sync", m.SyncGroupRequest(group_id=group, member_id="one", generation_id=1), (0, 5)
        ),
        Failing("leave", m.LeaveGroupRequest(group_id=group, member_id="one"), (0, 2)),
        Failing(
            "leave of members",
            m.LeaveGroupRequest(
                group_id=group,
                members=[m.LeaveGroupRequest.MemberIdentity(member_id="one")],
            ),
            (3, 5),
        ),
        Failing("description", m.DescribeGroupsRequest(groups=[group]), (0, 5)),
        Failing("deletion", m.DeleteGroupsRequest(groups_names=[group]), (0, 2)),
        Failing(
            "offset deletion",
            delete(
                group_id=group,
                topics=[delete.OffsetDeleteRequestTopic(name=HERE, partitions=[deleted])],
            ),
            (0,),
        ),
        Failing(
            "consumer heartbeat",
            m.ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id="one",
                member_epoch=0,
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=[HERE],
                topic_partitions=[],
            ),
            (0, 1),
        ),
        Failing("consumer group", m.ConsumerGroupDescribeRequest(group_ids=[group]), (0, 1)),
        Failing("share group", m.ShareGroupDescribeRequest(group_ids=[group]), (1,)),
    ]


def to_transactions(group: str, transactional_id: str) -> list[Failing]:
    add, commit = m.AddPartitionsToTxnRequest, m.TxnOffsetCommitRequest
    committed = commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return [
        Failing(
            "producer id",
            m.InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=10_000,
                producer_id=-1,
                producer_epoch=-1,
            ),
            (0, 4),
        ),
        Failing(
            "partitions to a transaction",
            add(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=7,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=HERE, partitions=[0])],
            ),
            (0, 3),
        ),
        Failing(
            "offsets to a transaction",
            m.AddOffsetsToTxnRequest(
                group_id=group,
                transactional_id=transactional_id,
                producer_id=7,
                producer_epoch=0,
            ),
            (0, 3),
        ),
        Failing(
            "end of a transaction",
            m.EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=7,
                producer_epoch=0,
                committed=True,
            ),
            (0, 3),
        ),
        Failing(
            "transaction",
            m.DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            (0,),
        ),
        Failing(
            "offsets of a transaction",
            commit(
                transactional_id=transactional_id,
                group_id=group,
                producer_id=7,
                producer_epoch=0,
                topics=[commit.TxnOffsetCommitRequestTopic(name=HERE, partitions=[committed])],
            ),
            (0, 3),
        ),
    ]


def waiting() -> list[Failing]:
    """In this order at broker 1, while broker 2 is stopped. A high watermark does not move while
    fewer replicas than min.insync.replicas are in sync (KIP-966), so that who waits for it runs
    into its timeout: NOT_ENOUGH_REPLICAS_AFTER_APPEND is not seen."""
    return [
        Failing("produce that is not replicated in time", produce(HERE, 100), (9,), True),
        Failing("produce while the ISR shrinks", produce(HERE, 2 * LAG_MS), (9,), True),
        Failing("produce with too few in sync", produce(HERE), (9, 12)),
    ]


def recorded(cluster: Cluster) -> dict[str, str]:
    """Label -> the response in hex, of a cluster of two that has just started."""
    found: dict[str, str] = {}
    with WireClient(cluster[ASKED].bootstrap) as client:
        _create(client)
        _wait_for_coordinators(client)
        topic_id = client.topic_id(NOT_HERE)

        def ask(failing: Failing) -> None:
            for version in failing.versions:
                request = failing.request.copy()
                with_topic_ids(request, {TOPIC_ID: topic_id})
                answer = client.call(request, version)
                with_topic_ids(answer, {topic_id: TOPIC_ID})
                found[f"{failing.label} v{version}"] = told(failing.request, answer, version)

        for failing in requests():
            ask(failing)
        cluster[OTHER].pause()
        try:
            for failing in waiting():
                ask(failing)
        finally:
            cluster[OTHER].resume()
    return found


def told(request: Message, answer: Message, version: int) -> str:
    """As `fault_answers.shown`, with ports that are always the same."""
    for endpoint in getattr(answer, "node_endpoints", ()):
        endpoint.port = FIRST_PORT + endpoint.node_id - 1
    return shown(request, answer, version)


def with_topic_ids(struct: Struct, others: dict[bytes, bytes]) -> None:
    """Put other topic ids into a request or a response, for those that are named."""
    for field in struct.FIELDS:
        value = getattr(struct, field)
        if field == "topic_id":
            setattr(struct, field, others.get(bytes(value), value))
        elif isinstance(value, list):
            items = [item.copy() if isinstance(item, Struct) else item for item in value]
            setattr(struct, field, items)
            for item in items:
                if isinstance(item, Struct):
                    with_topic_ids(item, others)


def _create(client: WireClient) -> None:
    shape = m.CreateTopicsRequest
    of_internal = {"cleanup.policy": "compact"}
    of_topics = {"min.insync.replicas": "2"}
    topics = [
        shape.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                shape.CreatableReplicaAssignment(partition_index=0, broker_ids=list(brokers))
            ],
            configs=[shape.CreatableTopicConfig(name=key, value=value) for key, value in configs],
        )
        for name, brokers, configs in (
            (HERE, (ASKED, OTHER), of_topics.items()),
            (ELSEWHERE, (OTHER, ASKED), of_topics.items()),
            (NOT_HERE, (OTHER,), {}.items()),
            ("__consumer_offsets", (OTHER, ASKED), of_internal.items()),
            ("__transaction_state", (OTHER, ASKED), of_internal.items()),
        )
    ]
    created = client.call(shape(topics=topics, timeout_ms=10_000), 5)
    assert {one.error_code for one in created.topics} == {0}, created
    for name in (HERE, ELSEWHERE, NOT_HERE):
        client.topic(name)


def _wait_for_coordinators(client: WireClient) -> None:
    """Until the one that is asked knows that it is none, and who is one."""
    for key_type, key in ((GROUP_KEY, GROUP), (TRANSACTION_KEY, TRANSACTIONAL_ID)):
        request = m.FindCoordinatorRequest(key=key, key_type=key_type)
        while client.call(request, 3).node_id != OTHER:
            continue  # the connection's own timeout ends it


def started(root: pathlib.Path) -> Cluster:
    """Two nodes of Apache Kafka, to be entered and started."""
    kinds = dict.fromkeys((ASKED, OTHER), KafkaNode)
    return Cluster(
        root, combined=(ASKED,), brokers=(OTHER,), kinds=kinds, settings=SETTINGS, fast=True
    )


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        started(pathlib.Path(directory)) as cluster,
    ):
        found = recorded(cluster.start())
    DATA.write_text(json.dumps(found, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
