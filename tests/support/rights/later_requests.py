"""Requests of share groups and streams groups; kwire has built the former."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages
from tests.support.rights.data_requests import Ask
from tests.support.rights.world import NO_ID, OK, OK_GONE, SECRET, TOPICS, World

m: Any = messages  # the requests are built of parts that have no type of their own here

GROUPS = ("ok-share", "secret-share")
IDLE = ("ok-share-idle", "secret-share-idle")
"""Without members; their offsets may be changed."""
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def asks(world: World) -> Iterator[Ask]:
    yield from _share_groups(world)
    yield from _share_offsets(world)
    yield from _share_state(world)
    yield from _streams_groups(world)


def share_deletions(world: World) -> Iterator[Ask]:
    """What is deleted of share groups on record, and at last the groups."""
    delete = m.DeleteShareGroupOffsetsRequest
    one = delete.DeleteShareGroupOffsetsRequestTopic
    for name in IDLE:
        yield Ask(f"DeleteShareGroupOffsets {name}", (0,), lambda v, g=name: delete(
            group_id=g, topics=[one(topic_name=n) for n in (OK, SECRET)]
        ))  # fmt: skip
    for name in (*GROUPS, *IDLE):
        yield Ask(f"DeleteGroups {name}", (0, 2), lambda v, g=name: m.DeleteGroupsRequest(
            groups_names=[g]
        ))  # fmt: skip


def _share_groups(world: World) -> Iterator[Ask]:
    for group in ("ok-none", "secret-none", *GROUPS):
        for topics in ([OK], [OK, SECRET], [OK_GONE], None):
            yield Ask(f"ShareGroupHeartbeat {group} {topics}", (1,), lambda v, g=group, t=topics: (
                m.ShareGroupHeartbeatRequest(
                    group_id=g, member_id=MEMBER, member_epoch=5, subscribed_topic_names=t
                )
            ))  # fmt: skip
    yield Ask("ShareGroupDescribe", (1,), lambda v: m.ShareGroupDescribeRequest(
        group_ids=[*GROUPS, *IDLE, "ok-none", "secret-none"], include_authorized_operations=True
    ))  # fmt: skip
    ids = (world.topic_ids[OK], world.topic_ids[SECRET], NO_ID)
    fetch, acknowledge = m.ShareFetchRequest, m.ShareAcknowledgeRequest
    for group in GROUPS:
        yield Ask(f"ShareFetch {group}", (1, 2), lambda v, g=group: fetch(
            group_id=g, member_id=MEMBER, share_session_epoch=-1, max_wait_ms=0, max_records=10,
            batch_size=10,
            topics=[
                fetch.FetchTopic(
                    topic_id=each, partitions=[fetch.FetchPartition(partition_index=0)]
                )
                for each in ids
            ],
        ))  # fmt: skip
        yield Ask(f"ShareAcknowledge {group}", (1, 2), lambda v, g=group: acknowledge(
            group_id=g, member_id=MEMBER, share_session_epoch=1,
            topics=[
                acknowledge.AcknowledgeTopic(
                    topic_id=each,
                    partitions=[acknowledge.AcknowledgePartition(partition_index=0)],
                )
                for each in ids
            ],
        ))  # fmt: skip


def _share_offsets(world: World) -> Iterator[Ask]:
    describe = m.DescribeShareGroupOffsetsRequest
    group = describe.DescribeShareGroupOffsetsRequestGroup
    topic = describe.DescribeShareGroupOffsetsRequestTopic

    def described(version: int, all_topics: bool) -> Any:
        topics = [topic(topic_name=n, partitions=[0]) for n in TOPICS]
        chosen = None if all_topics else topics
        return describe(groups=[
            group(group_id=g, topics=chosen) for g in (*GROUPS, *IDLE, "ok-none", "secret-none")
        ])  # fmt: skip

    yield Ask("DescribeShareGroupOffsets", (0, 1), lambda v: described(v, False))
    yield Ask("DescribeShareGroupOffsets of all", (0, 1), lambda v: described(v, True))
    alter, delete = m.AlterShareGroupOffsetsRequest, m.DeleteShareGroupOffsetsRequest
    one = [alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)]
    for name in ("ok-none", "secret-none"):
        yield Ask(f"AlterShareGroupOffsets {name}", (0,), lambda v, g=name: alter(
            group_id=g,
            topics=[
                alter.AlterShareGroupOffsetsRequestTopic(topic_name=n, partitions=one)
                for n in (SECRET, OK_GONE)
            ],
        ))  # fmt: skip
        yield Ask(f"DeleteShareGroupOffsets {name}", (0,), lambda v, g=name: delete(
            group_id=g,
            topics=[
                delete.DeleteShareGroupOffsetsRequestTopic(topic_name=n) for n in (SECRET, OK_GONE)
            ],
        ))  # fmt: skip
    for name in (*GROUPS, *IDLE):
        yield Ask(f"AlterShareGroupOffsets {name}", (0,), lambda v, g=name: alter(
            group_id=g,
            topics=[
                alter.AlterShareGroupOffsetsRequestTopic(topic_name=n, partitions=one)
                for n in TOPICS
            ],
        ))  # fmt: skip
    for name in GROUPS:
        yield Ask(f"DeleteShareGroupOffsets {name}", (0,), lambda v, g=name: delete(
            group_id=g, topics=[delete.DeleteShareGroupOffsetsRequestTopic(topic_name=OK)]
        ))  # fmt: skip


def _share_state(world: World) -> Iterator[Ask]:
    """The state of share groups, which only brokers ask for: of a partition that there is not, and
    read of one that there is."""
    for name, shape in (
        ("InitializeShareGroupState", m.InitializeShareGroupStateRequest),
        ("ReadShareGroupState", m.ReadShareGroupStateRequest),
        ("WriteShareGroupState", m.WriteShareGroupStateRequest),
        ("DeleteShareGroupState", m.DeleteShareGroupStateRequest),
        ("ReadShareGroupStateSummary", m.ReadShareGroupStateSummaryRequest),
    ):
        yield Ask(name, (0,), lambda v, shape=shape: _state_request(shape))
    for name, shape in (
        ("ReadShareGroupState that is", m.ReadShareGroupStateRequest),
        ("ReadShareGroupStateSummary that is", m.ReadShareGroupStateSummaryRequest),
    ):
        yield Ask(name, (0,), lambda v, shape=shape: (
            _state_request(shape, GROUPS[0], world.topic_ids[OK])
        ))  # fmt: skip


def _state_request(shape: Any, group: str = "ok-none", topic_id: bytes = NO_ID) -> Any:
    topic = {
        m.InitializeShareGroupStateRequest: "InitializeStateData",
        m.ReadShareGroupStateRequest: "ReadStateData",
        m.WriteShareGroupStateRequest: "WriteStateData",
        m.DeleteShareGroupStateRequest: "DeleteStateData",
        m.ReadShareGroupStateSummaryRequest: "ReadStateSummaryData",
    }[shape]
    one = getattr(shape, topic)(topic_id=topic_id, partitions=[shape.PartitionData(partition=0)])
    return shape(group_id=group, topics=[one])


def _streams_groups(world: World) -> Iterator[Ask]:
    heartbeat = m.StreamsGroupHeartbeatRequest
    for group in ("ok-none", "secret-none"):
        for topics in ([OK], [OK, SECRET]):
            sub = heartbeat.Subtopology(subtopology_id="0", source_topics=topics)
            topology = heartbeat.Topology(epoch=0, subtopologies=[sub])
            request = heartbeat(
                group_id=group, member_id=MEMBER, member_epoch=0, topology=topology,
                process_id="p", rebalance_timeout_ms=0, active_tasks=[], standby_tasks=[],
                warmup_tasks=[],
            )  # fmt: skip
            yield Ask(
                f"StreamsGroupHeartbeat {group} {topics}",
                (0, 1),
                lambda v, request=request: request,
            )
        yield Ask(f"StreamsGroupTopologyDescriptionUpdate {group}", (0,), lambda v, g=group: (
            m.StreamsGroupTopologyDescriptionUpdateRequest(group_id=g, member_id=MEMBER)
        ))  # fmt: skip
    yield Ask("StreamsGroupDescribe", (0, 1), lambda v: m.StreamsGroupDescribeRequest(
        group_ids=["ok-none", "secret-none"], include_authorized_operations=True
    ))  # fmt: skip
