"""Requests about topics, records, groups and transactions, as every user sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kwire.protocol import messages
from tests.support.rights.world import GONE, NO_ID, OK, OK_GONE, SECRET, SHARE_KEY, TOPICS, World
from tests.support.wire import batch_of

m: Any = messages  # the requests are built of parts that have no type of their own here

GROUPS = ("ok-simple", "secret-simple")
TXNS = ("ok-none-txn", "secret-none-txn")
NO_PRODUCER = 12345


class Ask(NamedTuple):
    """One request at some versions; `build(version)` makes it. `label` tells it from others."""

    label: str
    versions: tuple[int, ...]
    build: Callable[..., Any]


def asks(world: World) -> Iterator[Ask]:
    for part in (_records, _metadata, _offsets, _groups, _members, _transactions):
        yield from part(world)


def _records(world: World) -> Iterator[Ask]:
    ids = [world.topic_ids[OK], world.topic_ids[SECRET], NO_ID]

    def produce(
        version: int, acks: int = -1, transactional_id: str | None = None, names: Any = TOPICS
    ) -> Any:
        shape = m.ProduceRequest
        is_txn = {}
        if transactional_id:
            is_txn = {"producer_id": NO_PRODUCER, "producer_epoch": 0, "base_sequence": 0,
                      "transactional": True}  # fmt: skip
        elif names == "idempotent":
            is_txn = {"producer_id": NO_PRODUCER, "producer_epoch": 0, "base_sequence": 0}
        if isinstance(names, str):
            names = (OK, SECRET)
        batch = batch_of([b"value"], **is_txn)
        one = [shape.PartitionProduceData(index=0, records=batch)]
        if version >= 13:
            topics = [shape.TopicProduceData(topic_id=each, partition_data=one) for each in ids]
        else:
            topics = [shape.TopicProduceData(name=name, partition_data=one) for name in names]
        return shape(
            acks=acks, timeout_ms=9000, transactional_id=transactional_id, topic_data=topics
        )

    yield Ask("Produce", (3, 7, 12, 13), produce)
    yield Ask("Produce of one forbidden", (12,), lambda v: produce(v, names=(SECRET,)))
    yield Ask("Produce idempotent", (12,), lambda v: produce(v, names="idempotent"))
    for txn in TXNS:
        yield Ask(f"Produce {txn}", (3, 12, 13), lambda v, txn=txn: produce(v, -1, txn))
    yield Ask("Produce acks=0", (3, 12), lambda v: produce(v, 0))
    yield Ask("Produce acks=0 of ok", (12,), lambda v: produce(v, 0, names=(OK,)))
    yield Ask("Produce acks=0 ok-none-txn", (12,), lambda v: produce(v, 0, TXNS[0]))

    def fetch(version: int, **fields: Any) -> Any:
        shape = m.FetchRequest
        one = [shape.FetchPartition(partition=0, partition_max_bytes=1 << 20)]
        if version >= 13:
            topics = [shape.FetchTopic(topic_id=each, partitions=one) for each in ids]
        else:
            topics = [shape.FetchTopic(topic=name, partitions=one) for name in TOPICS]
        return shape(max_wait_ms=0, min_bytes=0, topics=topics, **fields)

    yield Ask("Fetch", (4, 11, 12, 13, 18), fetch)
    yield Ask("Fetch of a follower", (12, 14), lambda v: fetch(v, replica_id=77))
    state = m.FetchRequest.ReplicaState(replica_id=77, replica_epoch=3)
    yield Ask("Fetch of a follower", (18,), lambda v: fetch(v, replica_state=state))

    def delete_records(version: int) -> Any:
        shape = m.DeleteRecordsRequest
        one = [shape.DeleteRecordsPartition(partition_index=0, offset=0)]
        topics = [shape.DeleteRecordsTopic(name=name, partitions=one) for name in TOPICS]
        return shape(topics=topics, timeout_ms=9000)

    yield Ask("DeleteRecords", (0, 2), delete_records)


def _metadata(world: World) -> Iterator[Ask]:
    shape = m.MetadataRequest
    one = shape.MetadataRequestTopic

    def named(version: int, *names: str, creates: bool = False) -> Any:
        fields = {}
        if version >= 8:
            fields["include_topic_authorized_operations"] = True
        if 8 <= version <= 10:
            fields["include_cluster_authorized_operations"] = True
        topics = [one(name=name) for name in names]
        return shape(topics=topics, allow_auto_topic_creation=creates, **fields)

    yield Ask("Metadata", (4, 7, 8, 10, 12, 13), lambda v: named(v, *TOPICS))
    yield Ask(
        "Metadata that creates",
        (1, 4, 9, 13),
        lambda v: named(v, "ok invalid", "gone invalid", creates=True),
    )
    yield Ask("Metadata of all", (0,), lambda v: shape(topics=[]))
    yield Ask("Metadata of all", (1, 8, 12, 13), lambda v: shape(
        topics=None,
        **({"include_topic_authorized_operations": True} if v >= 8 else {}),
    ))  # fmt: skip
    yield Ask(
        "Metadata by id",
        (12, 13),
        lambda v: shape(
            topics=[
                one(name=None, topic_id=each)
                for each in (world.topic_ids[OK], world.topic_ids[SECRET], NO_ID)
            ],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
    )
    pages = m.DescribeTopicPartitionsRequest
    for label, names in (("", TOPICS), (" of all", ())):
        yield Ask(
            "DescribeTopicPartitions" + label,
            (0,),
            lambda v, names=names: pages(topics=[pages.TopicRequest(name=n) for n in names]),
        )
    producers = m.DescribeProducersRequest
    yield Ask(
        "DescribeProducers",
        (0,),
        lambda v: producers(
            topics=[producers.TopicRequest(name=n, partition_indexes=[0]) for n in TOPICS]
        ),
    )
    cluster = m.DescribeClusterRequest
    yield Ask(
        "DescribeCluster",
        (0, 1, 2),
        lambda v: cluster(include_cluster_authorized_operations=True),
    )
    yield Ask("DescribeCluster of controllers", (1, 2), lambda v: cluster(endpoint_type=2))


def _offsets(world: World) -> Iterator[Ask]:
    def list_offsets(version: int) -> Any:
        shape = m.ListOffsetsRequest
        one = [shape.ListOffsetsPartition(partition_index=0, timestamp=-2)]
        return shape(topics=[shape.ListOffsetsTopic(name=n, partitions=one) for n in TOPICS])

    yield Ask("ListOffsets", (1, 4, 7, 11), list_offsets)

    def epochs(version: int, replica: int = -1) -> Any:
        shape = m.OffsetForLeaderEpochRequest
        one = [shape.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        fields = {"replica_id": replica} if version >= 3 else {}
        topics = [shape.OffsetForLeaderTopic(topic=n, partitions=one) for n in TOPICS]
        return shape(topics=topics, **fields)

    yield Ask("OffsetForLeaderEpoch", (2, 3, 4), epochs)
    yield Ask("OffsetForLeaderEpoch of a follower", (4,), lambda v: epochs(v, 1))

    def commit(version: int, group: str) -> Any:
        shape = m.OffsetCommitRequest
        one = [
            shape.OffsetCommitRequestPartition(
                partition_index=0, committed_offset=1, committed_metadata=""
            )
        ]
        topic = shape.OffsetCommitRequestTopic
        if version >= 10:
            ids = (world.topic_ids[OK], world.topic_ids[SECRET], NO_ID)
            topics = [topic(topic_id=each, partitions=one) for each in ids]
        else:
            topics = [topic(name=n, partitions=one) for n in TOPICS]
        return shape(group_id=group, topics=topics)

    def fetch(version: int, group: str, all_topics: bool) -> Any:
        shape = m.OffsetFetchRequest
        if version <= 7:
            topics = [shape.OffsetFetchRequestTopic(name=n, partition_indexes=[0]) for n in TOPICS]
            return shape(group_id=group, topics=None if all_topics else topics)
        one = shape.OffsetFetchRequestTopics
        if version >= 10:
            ids = (world.topic_ids[OK], world.topic_ids[SECRET], NO_ID)
            asked = [one(topic_id=each, partition_indexes=[0]) for each in ids]
        else:
            asked = [one(name=n, partition_indexes=[0]) for n in TOPICS]
        chosen = None if all_topics else asked
        return shape(
            groups=[shape.OffsetFetchRequestGroup(group_id=g, topics=chosen) for g in GROUPS]
        )

    for group in GROUPS:
        yield Ask(f"OffsetCommit {group}", (2, 9, 10), lambda v, g=group: commit(v, g))
        yield Ask(f"OffsetFetch {group}", (1, 2, 7), lambda v, g=group: fetch(v, g, False))
        yield Ask(f"OffsetFetch of all {group}", (2, 7), lambda v, g=group: fetch(v, g, True))
    yield Ask("OffsetFetch", (8, 9, 10), lambda v: fetch(v, "", False))
    yield Ask("OffsetFetch of all", (8, 10), lambda v: fetch(v, "", True))
    shape = m.OffsetDeleteRequest
    one = [shape.OffsetDeleteRequestPartition(partition_index=7)]
    topics = [shape.OffsetDeleteRequestTopic(name=n, partitions=one) for n in TOPICS]
    for group in GROUPS:
        yield Ask(
            f"OffsetDelete {group}", (0,), lambda v, g=group: shape(group_id=g, topics=topics)
        )


def _groups(world: World) -> Iterator[Ask]:
    find = m.FindCoordinatorRequest
    for kind, keys in ((0, GROUPS), (1, TXNS), (2, (SHARE_KEY,))):
        if kind < 2:
            for key in keys:
                versions = (0, 1, 3) if kind == 0 else (1, 3)
                yield Ask(
                    f"FindCoordinator {key}",
                    versions,
                    lambda v, k=key, t=kind: find(key=k, **({"key_type": t} if v else {})),
                )
        yield Ask(
            f"FindCoordinator of type {kind}",
            (4, 6) if kind < 2 else (6,),
            lambda v, t=kind, k=keys: find(key_type=t, coordinator_keys=list(k)),
        )
    described = m.DescribeGroupsRequest
    yield Ask(
        "DescribeGroups",
        (0, 3, 6),
        lambda v: described(
            groups=[*GROUPS, "ok-none", "secret-none"],
            **({"include_authorized_operations": True} if v >= 3 else {}),
        ),
    )
    yield Ask("ListGroups", (0, 3, 4, 5), lambda v: m.ListGroupsRequest())
    consumers = m.ConsumerGroupDescribeRequest
    names = ["ok-consumer", "ok-alone", "secret-consumer", "ok-none", "secret-none"]
    yield Ask(
        "ConsumerGroupDescribe",
        (0, 1),
        lambda v: consumers(group_ids=names, include_authorized_operations=True),
    )
    yield Ask(
        "DeleteGroups",
        (0, 2),
        lambda v: m.DeleteGroupsRequest(groups_names=["ok-none", "secret-none"]),
    )


def _members(world: World) -> Iterator[Ask]:
    join, leave = m.JoinGroupRequest, m.LeaveGroupRequest
    protocol = join.JoinGroupRequestProtocol(name="range", metadata=b"")
    for group in ("ok-none", "secret-none"):
        yield Ask(f"JoinGroup {group}", (0, 5, 9), lambda v, g=group: join(
            group_id=g, session_timeout_ms=1, protocol_type="consumer", protocols=[protocol],
        ))  # fmt: skip
        yield Ask(f"SyncGroup {group}", (0, 5), lambda v, g=group: m.SyncGroupRequest(
            group_id=g, generation_id=1, member_id="m",
            **({"protocol_type": "consumer", "protocol_name": "range"} if v >= 5 else {}),
        ))  # fmt: skip
        yield Ask(f"Heartbeat {group}", (0, 4), lambda v, g=group: m.HeartbeatRequest(
            group_id=g, generation_id=1, member_id="m",
        ))  # fmt: skip
        yield Ask(f"LeaveGroup {group}", (0, 5), lambda v, g=group: (
            leave(group_id=g, member_id="m") if v <= 2
            else leave(group_id=g, members=[leave.MemberIdentity(member_id="m")])
        ))  # fmt: skip
        for topics in ([OK], [OK, SECRET], [OK_GONE], None):
            yield Ask(
                f"ConsumerGroupHeartbeat {group} {topics}",
                (0, 1),
                lambda v, g=group, t=topics: m.ConsumerGroupHeartbeatRequest(
                    group_id=g, member_id="m", member_epoch=5, subscribed_topic_names=t
                ),
            )


def _transactions(world: World) -> Iterator[Ask]:
    init = m.InitProducerIdRequest
    yield Ask(
        "InitProducerId",
        (0, 1, 5),
        lambda v: init(transactional_id=None, transaction_timeout_ms=60_000),
    )
    yield Ask("DescribeTransactions", (0,), lambda v: m.DescribeTransactionsRequest(
        transactional_ids=["ok-txn", "secret-txn", *TXNS]
    ))  # fmt: skip
    yield Ask("ListTransactions", (0, 1, 2), lambda v: m.ListTransactionsRequest())
    for txn in TXNS:
        yield Ask(f"InitProducerId {txn}", (0, 1, 5), lambda v, t=txn: init(
            transactional_id=t, transaction_timeout_ms=0,
        ))  # fmt: skip
        yield from _of_transaction(txn)
    yield from _markers(world)


def _of_transaction(txn: str) -> Iterator[Ask]:
    ids = {"transactional_id": txn, "producer_id": NO_PRODUCER, "producer_epoch": 0}
    add = m.AddPartitionsToTxnRequest

    def add_partitions(version: int, names: tuple[str, ...]) -> Any:
        topics = [add.AddPartitionsToTxnTopic(name=n, partitions=[0]) for n in names]
        if version <= 3:
            return add(
                v3_and_below_transactional_id=txn,
                v3_and_below_producer_id=NO_PRODUCER,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=topics,
            )
        one = add.AddPartitionsToTxnTransaction(**ids, topics=topics, verify_only=False)
        return add(transactions=[one])

    for names in (TOPICS, (OK,), (GONE,)):
        yield Ask(
            f"AddPartitionsToTxn {txn} {names}",
            (0, 3, 4, 5),
            lambda v, names=names: add_partitions(v, names),
        )
    yield Ask(f"EndTxn {txn}", (0, 3, 5), lambda v: m.EndTxnRequest(**ids, committed=True))
    commit = m.TxnOffsetCommitRequest
    one = [
        commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=""
        )
    ]
    for group in GROUPS:
        yield Ask(f"AddOffsetsToTxn {txn} {group}", (0, 4), lambda v, g=group: (
            m.AddOffsetsToTxnRequest(**ids, group_id=g)
        ))  # fmt: skip

        def commit_offsets(version: int, group: str = group) -> Any:
            topic = commit.TxnOffsetCommitRequestTopic
            topics = [topic(name=n, partitions=one) for n in TOPICS]
            return commit(**ids, group_id=group, topics=topics)

        yield Ask(f"TxnOffsetCommit {txn} {group}", (0, 2, 3, 5), commit_offsets)


def _markers(world: World) -> Iterator[Ask]:
    shape = m.WriteTxnMarkersRequest
    one = shape.WritableTxnMarker(
        producer_id=NO_PRODUCER,
        producer_epoch=0,
        topics=[shape.WritableTxnMarkerTopic(name=GONE, partition_indexes=[0, 1])],
    )
    yield Ask("WriteTxnMarkers", (1, 2), lambda v: shape(markers=[one]))
