"""Records on their way in and out, on top of `Client`. No output in here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kwire.cli.client import RETRY_PAUSE_S, RETRY_TIMEOUT_S, Client, Topic
from kwire.cli.operations import LATEST, TIMEOUT_MS, list_offsets
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.client.visible import one_buffer, visible_records
from kwire.clock import SystemClock
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, is_retriable
from kwire.protocol.records import Codec, Record, build_batch, iterate_headers
from kwire.protocol.records.partitioner import partition_of

FETCH_WAIT_MS = 500
FETCH_BYTES_MAX = 8 << 20

ProduceAnswer: TypeAlias = "m.ProduceResponse.PartitionProduceResponse"
Fetched: TypeAlias = "m.FetchResponse.PartitionData"
Header = tuple[str | bytes, bytes | None]


class Outgoing(NamedTuple):
    """One record to send: now without a timestamp, where the producer likes without a partition."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    partition: int | None = None


class Producer:
    """Sends records to a topic, a batch for each partition among them, one after the other.

    A record goes to its own partition; else to where Kafka's producers put its key; one without
    a key to the partition of all such records of its `send`, the next one at the next `send`.
    `acknowledged` counts the records that are kept.
    """

    def __init__(self, client: Client, topic: str, codec: Codec, acks: int = -1) -> None:
        self.acknowledged = 0
        self._client = client
        self._name = topic
        self._codec = codec
        self._acks = acks
        self._clock = SystemClock()
        self._next = 0

    def send(self, records: Sequence[Outgoing]) -> None:
        """Append records, in their order within each partition; retries while that can help."""
        now_ms = self._clock.wall_ms()
        topic = self._client.topic(self._name, create=True)
        count = len(topic.partitions)
        by_partition: dict[int, list[Record]] = {}
        for each in records:
            timestamp = now_ms if each.timestamp is None else each.timestamp
            record = Record(0, timestamp, each.key, each.value, list(each.headers))
            by_partition.setdefault(self._choose(each, count), []).append(record)
        self._next += 1
        for partition, batch in by_partition.items():
            self._send_batch(topic, partition, batch)
            self.acknowledged += len(batch)

    def _choose(self, record: Outgoing, count: int) -> int:
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of(record.key, count)
        return self._next % count

    def _send_batch(self, topic: Topic, index: int, records: Sequence[Record]) -> None:
        deadline = time.monotonic() + RETRY_TIMEOUT_S
        while True:
            answer = self._send_to(
                self._leader_of(topic, index), index, build_batch(records, codec=self._codec)
            )
            if answer.error_code == ErrorCode.NONE:
                return
            if not is_retriable(answer.error_code) or time.monotonic() > deadline:
                what = f"{self._name}-{index}"
                raise RequestFailed(answer.error_code, what, answer.error_message)
            time.sleep(RETRY_PAUSE_S)
            topic = self._client.topic(self._name, create=True)

    def _leader_of(self, topic: Topic, index: int) -> int:
        for entry in topic.partitions:
            if entry.partition_index == index:
                return entry.leader_id
        raise ClientError(f"topic {self._name} has no partition {index}")

    def _send_to(self, leader: int, index: int, batch: bytearray) -> ProduceAnswer:
        request_class = m.ProduceRequest
        data = request_class.PartitionProduceData(index=index, records=batch)
        topic = request_class.TopicProduceData(name=self._name, partition_data=[data])
        request = request_class(acks=self._acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        response = self._client.call(request, leader, version_max=12)
        return response.responses[0].partition_responses[0]


class Consumed(NamedTuple):
    """One record and where it is."""

    topic: str
    partition: int
    record: Record


def consume(
    client: Client,
    topic_name: str,
    positions: dict[int, int],
    *,
    follow: bool,
    committed_only: bool = False,
    waiting: Callable[[], None] | None = None,
) -> Iterator[Consumed]:
    """Records of a topic from `positions` (partition -> offset), which is moved on: past a record
    when the next one is asked for, so that one that its caller fails at stays in front of it.

    Ends at the log end of every partition, unless `follow`. `waiting` is called when nothing is
    there. `committed_only` leaves out records of aborted and open transactions.
    """
    topic = client.topic(topic_name)
    leaders = {entry.partition_index: entry.leader_id for entry in topic.partitions}
    ends = {} if follow else list_offsets(client, topic, LATEST)
    while follow or any(positions[index] < ends[index] for index in positions):
        found = False
        for leader in sorted(dict.fromkeys(leaders.values())):
            wanted = {
                index: offset
                for index, offset in positions.items()
                if leaders[index] == leader and (follow or offset < ends[index])
            }
            if not wanted:
                continue
            for record in _fetch(client, leader, topic_name, wanted, positions, committed_only):
                found = True
                yield record
        if not found and waiting is not None:
            waiting()


def _fetch(
    client: Client,
    leader: int,
    topic_name: str,
    wanted: Mapping[int, int],
    positions: dict[int, int],
    committed_only: bool,
) -> Iterator[Consumed]:
    """One fetch from one leader; moves `positions` past each record that it has yielded."""
    request_class = m.FetchRequest
    partitions = [
        request_class.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX
        )
        for index, offset in wanted.items()
    ]
    request = request_class(
        replica_id=-1,
        max_wait_ms=FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        isolation_level=1 if committed_only else 0,
        topics=[request_class.FetchTopic(topic=topic_name, partitions=partitions)],
    )
    response = client.call(request, leader, version_max=12)
    check(response.error_code, "fetch")
    for answered in response.responses:
        for partition in answered.partitions:
            index = partition.partition_index
            check(partition.error_code, f"{topic_name}-{index}")
            for record in _visible(partition, committed_only):
                if record.offset >= positions[index]:
                    yield Consumed(topic_name, index, record)
                    positions[index] = record.offset + 1
            positions[index] = max(positions[index], _end_of(partition, wanted[index]))


def _end_of(partition: Fetched, offset: int) -> int:
    """The offset behind the last batch of a response, control batches included."""
    end = offset
    if partition.records:
        for _, header in iterate_headers(one_buffer(partition.records)):
            end = header.next_offset
    return end


def _visible(partition: Fetched, committed_only: bool) -> Iterator[Record]:
    """The records of a partition's response that an application sees."""
    try:
        yield from visible_records(partition, committed_only=committed_only)
    except KafkaError as error:
        raise ClientError(f"partition {partition.partition_index}: {error}") from None
