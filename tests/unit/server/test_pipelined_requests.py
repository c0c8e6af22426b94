"""Requests that a client sends without waiting are answered as if it had waited for each.

Apache Kafka 4.4 looks at a connection's next request when the last one has its reply, so that each
sees what those before it did, whatever their acks. Here a request may start behind a Produce that
only waits; one that looks at the log does not (docs/adr/0007-one-connection-one-order.md). It was
answered from the log as it was before the write: ListOffsets told the old end, a Fetch from the new
one got OFFSET_OUT_OF_RANGE.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.records import Record, build_batch
from kwire.server.dispatch import is_built
from kwire.testing.cluster import Broker, wait_for
from tests.support.effort import seeds
from tests.support.wire import WireClient, fetch_request, produce_request

REQUESTS = 60
PARTITIONS = 2
PRODUCER_ID = 4711
Request = tuple[Any, int]  # and its version


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    options = {
        "transaction.partition.verification.enable": "false",  # writes need no coordinator
        "offsets.topic.num.partitions": "1",
    }
    with Broker(options=options) as broker, WireClient(broker.bootstrap) as client:
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["any"])
        wait_for(lambda: client.call(request, 4).coordinators[0].error_code == 0, "a coordinator")
        yield broker.bootstrap


def batch(timestamp: int, **options: Any) -> bytes:
    return bytes(build_batch([Record(0, timestamp, None, b"v", [])], **options))


class Writer:
    """Requests about one topic, drawn at random; the same ones for each topic with one seed."""

    def __init__(self, topic: str, seed: int) -> None:
        self.topic = topic
        self.random = random.Random(seed)
        self.clock = 1_700_000_000_000
        self.ends = [0] * PARTITIONS
        self.sequences = [0] * PARTITIONS
        self.epoch = 0

    def requests(self, count: int) -> list[Request]:
        kinds: list[Callable[[int], Request]] = [
            self.produce, self.produce, self.produce, self.transactional, self.marker, self.fetch,
            self.fetch, self.list_offsets, self.list_offsets, self.end_of_epoch, self.delete,
            self.directories, self.producers, self.commit, self.committed, self.metadata,
        ]  # fmt: skip
        return [self.random.choice(kinds)(self.random.randrange(PARTITIONS)) for _ in range(count)]

    def produce(self, partition: int) -> Request:
        self.clock += 1
        self.ends[partition] += 1
        acks = self.random.choice((0, 0, 1, 1, -1))
        return produce_request(self.topic, {partition: batch(self.clock)}, acks), 9

    def transactional(self, partition: int) -> Request:
        self.clock += 1
        self.ends[partition] += 1
        sequence = self.sequences[partition]
        self.sequences[partition] += 1
        data = batch(
            self.clock,
            producer_id=PRODUCER_ID,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = produce_request(self.topic, {partition: data}, self.random.choice((0, 1, -1)))
        request.transactional_id = "any"
        return request, 9

    def marker(self, partition: int) -> Request:
        shape = m.WriteTxnMarkersRequest
        self.ends[partition] += 1
        marker = shape.WritableTxnMarker(
            producer_id=PRODUCER_ID,
            producer_epoch=self.epoch,
            transaction_result=self.random.random() < 0.5,
            topics=[shape.WritableTxnMarkerTopic(name=self.topic, partition_indexes=[partition])],
            coordinator_epoch=0,
        )
        return shape(markers=[marker]), 1

    def fetch(self, partition: int) -> Request:
        offset = max(0, self.ends[partition] - self.random.randrange(4))
        isolation = self.random.randrange(2)
        return fetch_request(self.topic, {partition: offset}, isolation_level=isolation), 12

    def list_offsets(self, partition: int) -> Request:
        shape = m.ListOffsetsRequest
        asked = shape.ListOffsetsPartition(
            partition_index=partition, timestamp=self.random.choice((-1, -1, -2, self.clock))
        )
        topic = shape.ListOffsetsTopic(name=self.topic, partitions=[asked])
        isolation = self.random.randrange(2)
        return shape(replica_id=-1, isolation_level=isolation, topics=[topic]), 7

    def end_of_epoch(self, partition: int) -> Request:
        shape = m.OffsetForLeaderEpochRequest
        asked = shape.OffsetForLeaderPartition(partition=partition, leader_epoch=0)
        topic = shape.OffsetForLeaderTopic(topic=self.topic, partitions=[asked])
        return shape(replica_id=-1, topics=[topic]), 4

    def delete(self, partition: int) -> Request:
        shape = m.DeleteRecordsRequest
        offset = self.random.choice((-1, self.ends[partition], self.ends[partition] // 2))
        asked = shape.DeleteRecordsPartition(partition_index=partition, offset=offset)
        topic = shape.DeleteRecordsTopic(name=self.topic, partitions=[asked])
        return shape(topics=[topic], timeout_ms=5000), 2

    def directories(self, partition: int) -> Request:
        shape = m.DescribeLogDirsRequest
        topic = shape.DescribableLogDirTopic(topic=self.topic, partitions=[partition])
        return shape(topics=[topic]), 4

    def producers(self, partition: int) -> Request:
        shape = m.DescribeProducersRequest
        topic = shape.TopicRequest(name=self.topic, partition_indexes=[partition])
        return shape(topics=[topic]), 0

    def commit(self, partition: int) -> Request:
        shape = m.OffsetCommitRequest
        committed = shape.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=self.ends[partition]
        )
        topic = shape.OffsetCommitRequestTopic(name=self.topic, partitions=[committed])
        return shape(
            group_id=self.topic, generation_id_or_member_epoch=-1, topics=[topic]
        ), 8  # fmt: skip

    def committed(self, partition: int) -> Request:
        shape = m.OffsetFetchRequest
        topic = shape.OffsetFetchRequestTopics(name=self.topic, partition_indexes=[partition])
        group = shape.OffsetFetchRequestGroup(group_id=self.topic, topics=[topic])
        return shape(groups=[group]), 8

    def metadata(self, partition: int) -> Request:
        topic = m.MetadataRequest.MetadataRequestTopic(name=self.topic)
        return m.MetadataRequest(topics=[topic], allow_auto_topic_creation=False), 12


IGNORED = {"topic_id", "timestamp", "total_bytes", "usable_bytes", "last_timestamp"}
"""What differs between two topics, or with the time of day (a marker's timestamp)."""


def plain(value: Any, topic: str) -> Any:
    """An answer as data, without what two topics differ in."""
    fields = getattr(value, "FIELDS", None)
    if fields is not None:
        return {name: plain(getattr(value, name), topic) for name in fields if name not in IGNORED}
    if isinstance(value, (list, tuple)):
        return [plain(item, topic) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)  # records: those of a marker have the time of day
    return "the topic" if value == topic else value


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("configs", [{}, {"flush.messages": "1"}], ids=["written", "synced"])
def test_a_pipeline_is_answered_as_one_request_at_a_time(
    bootstrap: str, seed: int, configs: dict[str, str]
) -> None:
    piped = f"piped-{seed}-{len(configs)}"
    single = piped.replace("piped", "single")
    with WireClient(bootstrap) as client, WireClient(bootstrap) as patient:
        for topic in (piped, single):
            client.create_topic(topic, PARTITIONS, configs)
        requests = Writer(piped, seed).requests(REQUESTS)
        answers = client.pipeline(requests)
        for at, (request, version) in enumerate(Writer(single, seed).requests(REQUESTS)):
            (expected,) = patient.pipeline([(request, version)])
            assert plain(answers[at], piped) == plain(expected, single), (at, requests[at])


ORDER_OF_THEIR_OWN = {
    "Produce": "appends behind those before it",
    "OffsetCommit": "decided by the group's coordinator, in order",
    "Heartbeat": "as OffsetCommit; a slow disk must not cost a member its place",
    "ConsumerGroupHeartbeat": "as Heartbeat",
    "ShareGroupHeartbeat": "as Heartbeat",
    "Metadata": "tells what the controller decided",
    "FindCoordinator": "as Metadata",
    "ApiVersions": "tells nothing that changes",
}


def test_every_api_waits_for_writes_but_those_that_are_named() -> None:
    from kwire.server.dispatch import Dispatcher

    dispatcher = Dispatcher({key: info.name for key, info in API_KEYS.items()})
    built = [key for key, info in API_KEYS.items() if is_built(info)]
    exempt = {
        API_KEYS[key].name for key in built if not dispatcher.route_local(key).waits_for_writes
    }
    assert len(built) > 50
    assert exempt == set(ORDER_OF_THEIR_OWN), "WAITS_FOR_WRITES = False needs a reason here"
