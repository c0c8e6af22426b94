"""Requests that fail for real on a fresh broker, so that an answer of `kwire/faults` can be laid
beside the real one: `python -m tests.support.fault_answers` records Apache Kafka's."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.frame import encode_response
from kwire.protocol.structs import Message, Struct
from tests.support.wire import WireClient

DATA = pathlib.Path(__file__).parents[1] / "golden/data/fault_answers.json"
TOPIC = "there"
GONE = "gone"
END = m.EndTxnRequest(transactional_id="none", producer_id=7, producer_epoch=0, committed=True)


def requests() -> Iterator[tuple[str, Any, int]]:
    """(label, request, version)"""
    for name, request, versions in _data_plane() + _groups() + _transactions() + _administration():
        for version in versions:
            yield f"{name} v{version}", request, version


Asked = list[tuple[str, Any, tuple[int, ...]]]


def _fetch(
    topic: str, offset: int = 0, epoch: int = -1, *, session_id: int = 0, session_epoch: int = -1
) -> m.FetchRequest:
    shape = m.FetchRequest
    partition = shape.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1000
    )
    topics = [shape.FetchTopic(topic=topic, partitions=[partition])] if topic else []
    return shape(
        max_wait_ms=0,
        max_bytes=1000,
        topics=topics,
        session_id=session_id,
        session_epoch=session_epoch,
    )


def _data_plane() -> Asked:
    produce, offsets = m.ProduceRequest, m.ListOffsetsRequest
    data = [produce.PartitionProduceData(index=at, records=b"x" * 70) for at in (0, 3)]
    epochs, records = m.OffsetForLeaderEpochRequest, m.DeleteRecordsRequest
    at_0 = offsets.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    return [
        (
            "produce to an unknown topic",
            produce(
                acks=1,
                timeout_ms=1000,
                topic_data=[produce.TopicProduceData(name=GONE, partition_data=data)],
            ),
            (9, 12),
        ),
        ("fetch of an unknown topic", _fetch(GONE), (4, 7, 12)),
        ("fetch out of range", _fetch(TOPIC, 99), (4, 7, 12)),
        ("fetch at a later epoch", _fetch(TOPIC, 0, 99), (12,)),
        ("fetch of an unknown session", _fetch("", session_id=77, session_epoch=3), (7, 12, 17)),
        (
            "offsets of an unknown topic",
            offsets(replica_id=-1, topics=[offsets.ListOffsetsTopic(name=GONE, partitions=[at_0])]),
            (1, 4, 7),
        ),
        (
            "epochs of an unknown topic",
            epochs(
                replica_id=-1,
                topics=[
                    epochs.OffsetForLeaderTopic(
                        topic=GONE,
                        partitions=[epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0)],
                    )
                ],
            ),
            (3, 4),
        ),
        (
            "records deleted beyond the end",
            records(
                timeout_ms=1000,
                topics=[
                    records.DeleteRecordsTopic(
                        name=TOPIC,
                        partitions=[records.DeleteRecordsPartition(partition_index=0, offset=99)],
                    )
                ],
            ),
            (1, 2),
        ),
        (
            "metadata of an unknown topic",
            m.MetadataRequest(
                topics=[m.MetadataRequest.MetadataRequestTopic(name=GONE)],
                allow_auto_topic_creation=False,
            ),
            (4, 9, 12),
        ),
    ]


def _groups() -> Asked:
    commit, heartbeat = m.OffsetCommitRequest, m.ConsumerGroupHeartbeatRequest
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return [
        (
            "commit of a stranger",
            commit(
                group_id="g",
                member_id="stranger",
                generation_id_or_member_epoch=3,
                topics=[commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            ),
            (2, 7),
        ),
        ("coordinator of nothing", m.FindCoordinatorRequest(key="g", key_type=9), (1, 3)),
        (
            "coordinators of nothing",
            m.FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=9),
            (4, 6),
        ),
        (
            "join with a short session",
            m.JoinGroupRequest(
                group_id="g",
                session_timeout_ms=1,
                rebalance_timeout_ms=1,
                protocol_type="consumer",
                protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
            ),
            (2, 5, 9),
        ),
        (
            "heartbeat of a stranger",
            m.HeartbeatRequest(group_id="g", member_id="stranger", generation_id=1),
            (0, 3, 4),
        ),
        (
            "sync of a stranger",
            m.SyncGroupRequest(group_id="g", member_id="stranger", generation_id=1),
            (0, 3, 4),
        ),
        ("a stranger leaves", m.LeaveGroupRequest(group_id="g", member_id="stranger"), (0, 2)),
        ("an unknown group is deleted", m.DeleteGroupsRequest(groups_names=["x", "y"]), (1, 2)),
        (
            "consumer heartbeat in no group",
            heartbeat(group_id="none", member_id="stranger", member_epoch=5),
            (1,),
        ),
    ]


def _transactions() -> Asked:
    add = m.AddPartitionsToTxnRequest
    return [
        (
            "a transaction that is too long",
            m.InitProducerIdRequest(
                transactional_id="long",
                transaction_timeout_ms=2**31 - 1,
                producer_id=-1,
                producer_epoch=-1,
            ),
            (1, 4),
        ),
        (
            "partitions to an unknown transaction",
            add(
                v3_and_below_transactional_id="none",
                v3_and_below_producer_id=7,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[
                    add.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0]),
                ],
            ),
            (1, 3),
        ),
        (
            "offsets to an unknown one",
            m.AddOffsetsToTxnRequest(
                group_id="g", transactional_id="none", producer_id=7, producer_epoch=0
            ),
            (1, 3),
        ),
        ("end of an unknown one", END, (1, 3)),
        (
            "an unknown one is described",
            m.DescribeTransactionsRequest(transactional_ids=["none"]),
            (0,),
        ),
    ]


def _administration() -> Asked:
    create, more = m.CreateTopicsRequest, m.CreatePartitionsRequest
    return [
        (
            "a topic that is there is created",
            create(
                timeout_ms=5000,
                topics=[create.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)],
            ),
            (2, 4),
        ),
        (
            "an unknown topic is deleted",
            m.DeleteTopicsRequest(topic_names=[GONE], timeout_ms=5000),
            (1, 4, 5),
        ),
        (
            "partitions for an unknown topic",
            more(
                timeout_ms=5000,
                topics=[more.CreatePartitionsTopic(name=GONE, count=3, assignments=None)],
            ),
            (1, 3),
        ),
    ]


def answers(bootstrap: str) -> dict[str, str]:
    """Label -> the response's bytes without texts of errors, in hex."""
    with WireClient(bootstrap) as client:
        create = m.CreateTopicsRequest
        topic = create.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        client.call(create(topics=[topic], timeout_ms=10_000), 5)
        _wait_for_groups(client)
        return {
            label: shown(request, client.call(request, version), version)
            for label, request, version in requests()
        }


def _wait_for_groups(client: WireClient) -> None:
    """Until both coordinators are there."""
    for key_type in (0, 1):
        key = "g" if key_type == 0 else "none"
        found = m.FindCoordinatorRequest(key=key, key_type=key_type)
        while client.call(found, 3).error_code:
            continue
    heartbeat = m.HeartbeatRequest(group_id="g", member_id="stranger", generation_id=1)
    while client.call(heartbeat, 4).error_code in (14, 15, 16):
        continue
    while client.call(END, 3).error_code in (14, 15, 16):
        continue


def shown(request: Any, response: Message, version: int) -> str:
    """A response in hex: without the texts of errors, the throttle time, and what Metadata tells of
    brokers, which is no part of an error."""
    _without_texts(response)
    if isinstance(response, m.MetadataResponse):
        response = response.copy(brokers=[], cluster_id=None, controller_id=-1)
    parts = encode_response(int(request.API_KEY), version, 0, response)
    return b"".join(parts).hex()


def _without_texts(struct: Struct) -> None:
    for field in struct.FIELDS:
        value = getattr(struct, field)
        if field == "error_message":
            setattr(struct, field, None)
        elif field == "throttle_time_ms":
            setattr(struct, field, 0)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Struct):
                    _without_texts(item)


def main() -> int:
    from tests.support.kafka import running_kafka

    with (
        tempfile.TemporaryDirectory() as directory,
        running_kafka(pathlib.Path(directory) / "kafka") as bootstrap,
    ):
        found = answers(bootstrap)
    DATA.write_text(json.dumps(found, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
