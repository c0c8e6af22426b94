"""Scrapes of `/metrics`, and what is asked of a broker between two of them."""

from __future__ import annotations

import importlib
import urllib.request
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from tests.support.wire import (
    WireClient,
    batch_of,
    fetch_request,
    produce_request,
    produce_values,
)

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
TIMEOUT_S = 60
TOPIC, GROUP = "measured", "measuring"
TRANSACTIONAL_ID = "measuring-once"
NO_TOPIC = "never-made"
Sample: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""Name and labels."""


class Scrape(NamedTuple):
    """What an endpoint shows: the type of each metric, and the values of the samples."""

    types: dict[str, str]
    values: dict[Sample, float]

    def value(self, name: str, **labels: str) -> float:
        """One sample; KeyError when it is not there."""
        return self.values[name, frozenset(labels.items())]

    def names(self) -> set[str]:
        """The names of all samples."""
        return {name for name, _ in self.values}


def scrape(url: str, *, as_openmetrics: bool = True) -> Scrape:
    """Ask, and read the answer by prometheus-client's own parser."""
    request = urllib.request.Request(url)
    if as_openmetrics:
        request.add_header("Accept", OPENMETRICS)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        return parse(response.read().decode(), as_openmetrics=as_openmetrics)


def parse(text: str, *, as_openmetrics: bool) -> Scrape:
    """See `scrape`. A metric that is there twice is refused."""
    module = importlib.import_module(
        "prometheus_client.openmetrics.parser" if as_openmetrics else "prometheus_client.parser"
    )
    types: dict[str, str] = {}
    values: dict[Sample, float] = {}
    for family in module.text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in values, f"{key} twice"
            types[sample.name] = family.type
            values[key] = sample.value
    return Scrape(types, values)


# -- what is asked


def settle(client: WireClient) -> None:
    """What answers differently until a broker has warmed up: a topic, coordinators."""
    client.create_topic(TOPIC, partitions=2)
    produce_values(client, TOPIC, 0, [b"first"])
    for kind in (0, 1):
        while True:
            request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[GROUP])
            if client.call(request, 4).coordinators[0].error_code == 0:
                break
    while client.call(_commit(1), 8).topics[0].partitions[0].error_code:
        pass
    while client.call(_init(None), 4).error_code:
        pass
    while client.call(_init("settling"), 4).error_code:
        pass
    _ask_transaction(client, "settling")


def ask_all(client: WireClient) -> None:
    """The same requests each time: writes, reads, groups, and mistakes."""
    client.call(m.ApiVersionsRequest(), 0)
    client.call(
        m.ApiVersionsRequest(client_software_name="measuring", client_software_version="1.0"), 3
    )
    client.metadata([TOPIC, NO_TOPIC])
    for values in ([b"a"], [b"b", b"c"]):
        request = produce_request(TOPIC, {0: batch_of(values), 1: batch_of(values)})
        client.call(request, 9)
    client.call(produce_request(TOPIC, {0: batch_of([b"d"])}, acks=1), 9)
    client.send(produce_request(TOPIC, {1: batch_of([b"e"])}, acks=0), 9)
    client._sent.pop()  # it is never answered
    client.call(produce_request(NO_TOPIC, {0: batch_of([b"x"])}), 9)
    client.call(produce_request(TOPIC, {0: _damaged(batch_of([b"x"]))}), 9)
    client.call(fetch_request(TOPIC, {0: 0, 1: 0}), 12)
    client.call(fetch_request(TOPIC, {0: 1000}), 12)
    client.call(fetch_request(TOPIC, {0: 0}), 4)
    client.call(fetch_request(NO_TOPIC, {0: 0}), 12)
    _ask_group(client)
    _ask_consumer_group(client)
    _ask_transaction(client, TRANSACTIONAL_ID)
    client.call(_init(None), 4)
    client.call(_list_offsets(), 7)
    client.call(m.ListGroupsRequest(), 4)
    client.call(m.DescribeGroupsRequest(groups=[GROUP, "none"]), 5)
    client.call(m.DescribeClusterRequest(), 0)
    client.metadata([TOPIC])


def _ask_group(client: WireClient) -> None:
    client.call(m.FindCoordinatorRequest(key="other", key_type=0), 1)
    client.call(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP, "other"]), 4)
    shape = m.JoinGroupRequest
    join = shape(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[shape.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = client.call(join, 3)
    member, generation = joined.member_id, joined.generation_id
    sync = m.SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member)
    client.call(sync, 3)
    beat = m.HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member)
    client.call(beat, 3)
    client.call(m.HeartbeatRequest(group_id=GROUP, generation_id=99, member_id=member), 3)
    client.call(_commit(2, generation, member), 8)
    client.call(_commit(2, 99, member), 8)
    shape_of_group = m.OffsetFetchRequest.OffsetFetchRequestGroup
    client.call(m.OffsetFetchRequest(groups=[shape_of_group(group_id=GROUP, topics=None)]), 8)
    client.call(m.LeaveGroupRequest(group_id=GROUP, member_id=member), 2)


def _ask_consumer_group(client: WireClient) -> None:
    """A member comes, reads what it has, and goes; then what the classic group has committed."""
    beat = m.ConsumerGroupHeartbeatRequest(
        group_id="consuming",
        member_id="first-member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    joined = client.call(beat, 1)
    again = m.ConsumerGroupHeartbeatRequest(
        group_id="consuming", member_id="first-member", member_epoch=joined.member_epoch
    )
    client.call(again, 1)
    again.member_epoch = -1
    client.call(again, 1)
    shape = m.OffsetDeleteRequest
    topic = shape.OffsetDeleteRequestTopic(
        name=TOPIC, partitions=[shape.OffsetDeleteRequestPartition(partition_index=1)]
    )
    client.call(shape(group_id=GROUP, topics=[topic]), 0)
    client.call(_commit(3, group_id="forgotten"), 8)
    client.call(m.DeleteGroupsRequest(groups_names=["forgotten"]), 2)


def transactional_request(
    topic: str, transactional_id: str, producer: m.InitProducerIdResponse
) -> m.ProduceRequest:
    """The first record of a producer's transaction, in partition 0."""
    batch = build_batch(
        [Record(0, 1_700_000_000_000, None, b"t", [])],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    request: m.ProduceRequest = produce_request(topic, {0: bytes(batch)})
    request.transactional_id = transactional_id
    return request


def _ask_transaction(client: WireClient, transactional_id: str) -> None:
    """One that is committed, in two partitions, after one that its producer has not begun."""
    producer = client.call(_init(transactional_id), 4)
    request = transactional_request(TOPIC, transactional_id, producer)
    client.call(request, 9)
    shape = m.AddPartitionsToTxnRequest
    topic = shape.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 1])
    client.call(
        shape(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[topic],
        ),
        3,
    )
    client.call(request, 9)
    end = m.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    client.call(end, 3)


def _damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def _init(transactional_id: str | None) -> m.InitProducerIdRequest:
    return m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)


def _commit(
    offset: int, generation: int = -1, member: str = "", group_id: str = GROUP
) -> m.OffsetCommitRequest:
    shape = m.OffsetCommitRequest
    partitions = [
        shape.OffsetCommitRequestPartition(partition_index=at, committed_offset=offset)
        for at in (0, 1)
    ]
    return shape(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[shape.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
    )


def _list_offsets() -> m.ListOffsetsRequest:
    shape = m.ListOffsetsRequest
    partitions = [shape.ListOffsetsPartition(partition_index=at, timestamp=-1) for at in (0, 1, 7)]
    return shape(replica_id=-1, topics=[shape.ListOffsetsTopic(name=TOPIC, partitions=partitions)])


COUNTED = (
    "kafka_network_requestmetrics_",
    "kafka_server_brokertopicmetrics_",
    "kafka_server_addpartitionstotxnmanager_",
    "kafka_server_delayedproducemetrics_",
    "kafka_controller_controllerstats_",
    "kafka_server_group_coordinator_metrics_consumer_group_rebalance_",
    "kafka_server_group_coordinator_metrics_group_completed_",
    "kafka_server_group_coordinator_metrics_offset_commit_",
    "kafka_server_group_coordinator_metrics_offset_deletion_",
    "kafka_server_group_coordinator_metrics_offset_expiration_",
)


class Comparable(NamedTuple):
    """What has to be the same of two brokers: the types and label sets of metrics, and by how much
    `ask_all` has raised the counters of what it asks."""

    types: dict[str, str]
    labels: dict[str, list[list[str]]]
    changes: list[tuple[str, list[tuple[str, str]], float]]


def comparable(before: Scrape, after: Scrape) -> Comparable:
    """See the class; of Kafka's metrics."""
    names = sorted(name for name in after.names() if name.startswith("kafka_"))
    labels: dict[str, list[list[str]]] = {}
    for name in names:
        sets = {tuple(sorted(dict(key[1]))) for key in after.values if key[0] == name}
        labels[name] = sorted(map(list, sets))
    counted = [
        name for name in names if name.startswith(COUNTED) and name.endswith(("_total", "_count"))
    ]
    grown = [
        (name, sorted(found), value)
        for (name, found), value in changes(before, after, counted).items()
        if dict(found).get("request", "Fetch") in ASKED
    ]
    return Comparable({name: after.types[name] for name in names}, labels, sorted(grown))


def measured(bootstrap: str, url: str) -> Comparable:
    """What `ask_all` changes at a broker. Kafka counts an answer when it has been sent."""
    with WireClient(bootstrap) as client:
        settle(client)
        before = quiet(url)
        ask_all(client)
        return comparable(before, quiet(url))


def quiet(url: str) -> Scrape:
    """A scrape between two that show the same counts of what `ask_all` asks."""
    last = None
    while True:
        found = scrape(url, as_openmetrics=False)
        now = comparable(Scrape({}, {}), found).changes
        if now == last:
            return found
        last = now


ASKED = (
    "ApiVersions", "Metadata", "Produce", "Fetch", "FetchConsumer", "FindCoordinator", "JoinGroup",
    "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup", "InitProducerId",
    "ListOffsets", "ListGroups", "DescribeGroups", "DescribeCluster", "ConsumerGroupHeartbeat",
    "OffsetDelete", "DeleteGroups", "EndTxn",
)  # fmt: skip
"""The APIs that `ask_all` asks."""


def changes(before: Scrape, after: Scrape, names: Iterable[str]) -> dict[Sample, float]:
    """By how much samples with these names have grown; what has not is left out."""
    wanted = set(names)
    return {
        key: value - before.values.get(key, 0)
        for key, value in after.values.items()
        if key[0] in wanted and value != before.values.get(key, 0)
    }
