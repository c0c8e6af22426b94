"""Whoever asks for much has to wait for it: what each API does in slices counts for its client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.api import (
    describe_configs,
    describe_log_dirs,
    fetch,
    forwarded,
    list_offsets,
    metadata,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from kwire.protocol import messages as m
from kwire.replica import bounded_read, delayed_read
from kwire.server import slice_time
from kwire.testing.cluster import NodeInThread, wait_for
from tests.support.wire import WireClient, batch_of

TOPIC, PARTITIONS, GROUP = "t", 5, "g"
TOPIC_RESOURCE = 2


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeInThread]:
    with NodeInThread(tmp_path_factory.mktemp("charged") / "data") as thread:
        with WireClient(thread.bootstrap, client_id="free") as client:
            client.create_topic(TOPIC, PARTITIONS)
            find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
            wait_for(
                lambda: client.call(find, 4).coordinators[0].error_code == 0, "the coordinator"
            )
        yield thread


@pytest.fixture(autouse=True)
def small_slices_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice has few elements, and each is above the quota by itself."""
    for module in (
        fetch, produce, list_offsets, offset_fetch, offset_for_leader_epoch, bounded_read,
        delayed_read,
    ):  # fmt: skip
        monkeypatch.setattr(module, "SLICE_PARTITIONS", 2)
    monkeypatch.setattr(describe_configs, "SLICE_RESOURCES", 2)
    monkeypatch.setattr(describe_log_dirs, "SLICE_LOGS", 2)
    monkeypatch.setattr(metadata, "AT_ONCE_PARTITIONS_MAX", 2)
    monkeypatch.setattr(forwarded, "ENCODED_TOPICS", 2)
    monkeypatch.setattr(slice_time, "PERCENT_PER_NS", 1e9)


def _produce(acks: int = 1) -> Any:
    shape = m.ProduceRequest
    data = [
        shape.PartitionProduceData(index=index, records=batch_of([b"x"]))
        for index in range(PARTITIONS)
    ]
    topics = [shape.TopicProduceData(name=TOPIC, partition_data=data)]
    return shape(acks=acks, timeout_ms=30_000, topic_data=topics)


def _fetch(replica_id: int = -1) -> Any:
    shape = m.FetchRequest
    partitions = [
        shape.FetchPartition(partition=index, partition_max_bytes=1000)
        for index in range(PARTITIONS)
    ]
    topics = [shape.FetchTopic(topic=TOPIC, partitions=partitions)]
    return shape(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1000, session_epoch=-1,
        topics=topics,
    )  # fmt: skip


def _list_offsets() -> Any:
    shape = m.ListOffsetsRequest
    partitions = [
        shape.ListOffsetsPartition(partition_index=index, timestamp=-1)
        for index in range(PARTITIONS)
    ]
    topics = [shape.ListOffsetsTopic(name=TOPIC, partitions=partitions)]
    return shape(replica_id=-1, topics=topics)


def _epochs() -> Any:
    shape = m.OffsetForLeaderEpochRequest
    partitions = [
        shape.OffsetForLeaderPartition(partition=index, leader_epoch=0)
        for index in range(PARTITIONS)
    ]
    topics = [shape.OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)]
    return shape(replica_id=-1, topics=topics)


def _configs() -> Any:
    shape = m.DescribeConfigsRequest
    resource = shape.DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=None
    )
    return shape(resources=[resource] * PARTITIONS)


def _offset_fetch() -> Any:
    shape = m.OffsetFetchRequest
    topics = [shape.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(PARTITIONS)))]
    return shape(groups=[shape.OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])


def _create() -> Any:
    shape = m.CreateTopicsRequest
    topics = [
        shape.CreatableTopic(name=f"new{number}", num_partitions=1, replication_factor=1)
        for number in range(PARTITIONS)
    ]
    return shape(topics=topics, timeout_ms=60_000, validate_only=True)


ASKED: dict[str, tuple[Callable[[], Any], int]] = {
    "Produce": (_produce, 9),
    "Fetch": (_fetch, 12),
    "ListOffsets": (_list_offsets, 7),
    "OffsetForLeaderEpoch": (_epochs, 4),
    "Metadata": (lambda: m.MetadataRequest(topics=None), 9),
    "Metadata of one topic": (
        lambda: m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)]),
        9,
    ),
    "DescribeConfigs": (_configs, 4),
    "DescribeLogDirs": (lambda: m.DescribeLogDirsRequest(topics=None), 4),
    "OffsetFetch": (_offset_fetch, 8),
    "CreateTopics": (_create, 7),
}


def _bind(node: NodeInThread, client_id: str) -> None:
    """A quota that nothing exceeds but the slices."""
    shape = m.AlterClientQuotasRequest
    entry = shape.EntryData(
        entity=[shape.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[shape.OpData(key="request_percentage", value=1e7)],
    )
    with WireClient(node.bootstrap, client_id="free") as client:
        assert client.call(shape(entries=[entry]), 1).entries[0].error_code == 0
        asked = m.DescribeClientQuotasRequest
        component = asked.ComponentData(entity_type="client-id", match_type=0, match=client_id)
        wait_for(lambda: client.call(asked(components=[component]), 1).entries, "the quota")


@pytest.mark.parametrize("name", ASKED)
def test_who_asks_for_much_waits_for_the_time_it_takes(node: NodeInThread, name: str) -> None:
    _bind(node, name)
    make, version = ASKED[name]
    with WireClient(node.bootstrap, client_id=name) as client:
        assert client.call(make(), version).throttle_time_ms > 0


@pytest.mark.parametrize("name", ["followers", "without acks"])
def test_followers_and_what_is_not_answered_count_for_nobody(node: NodeInThread, name: str) -> None:
    _bind(node, name)
    with WireClient(node.bootstrap, client_id=name) as client:
        if name == "followers":
            assert client.call(_fetch(replica_id=1), 12).throttle_time_ms == 0
        else:
            client.pipeline([(_produce(acks=0), 9)])
        assert client.call(m.ListGroupsRequest(), 4).throttle_time_ms == 0
