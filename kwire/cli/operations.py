"""What the commands do, on top of `Client`: topics, groups, records. No output in here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kwire.cli.client import (
    BOOTSTRAP,
    RETRY_PAUSE_S,
    RETRY_TIMEOUT_S,
    Client,
    ClientError,
    RequestFailed,
    check,
)
from kwire.clock import SystemClock
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, is_retriable
from kwire.protocol.records import Codec, Record, build_batch, iterate_headers, read_batch
from kwire.protocol.records.control import ControlType, control_type

EARLIEST = -2
LATEST = -1
TIMEOUT_MS = 30_000
FETCH_WAIT_MS = 500
FETCH_BYTES_MAX = 8 << 20
TOPIC_RESOURCE = 2


def create_topic(
    client: Client, name: str, partitions: int, replication: int, configs: Mapping[str, str]
) -> Any:
    """Create a topic (-1 partitions or replicas: the broker's defaults); its result."""
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[],
        configs=[
            m.CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in configs.items()
        ],
    )
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    result = client.call(request).topics[0]
    check(result.error_code, f"topic {name}", result.error_message)
    return result


def delete_topic(client: Client, name: str) -> None:
    """Delete a topic by its name."""
    request = m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState(name=name)],
        topic_names=[name],
        timeout_ms=TIMEOUT_MS,
    )
    result = client.call(request).responses[0]
    check(result.error_code, f"topic {name}", result.error_message)


def topic_configs(client: Client, name: str) -> list[Any]:
    """A topic's described configs, by name."""
    request = m.DescribeConfigsRequest(
        resources=[
            m.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
            )
        ]
    )
    result = client.call(request).results[0]
    check(result.error_code, f"topic {name}", result.error_message)
    return sorted(result.configs, key=lambda entry: str(entry.name))


def alter_topic(client: Client, name: str, configs: Mapping[str, str | None]) -> None:
    """Set a topic's configs; None takes one back to its default."""
    request_class = m.IncrementalAlterConfigsRequest
    resource = request_class.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=name,
        configs=[
            request_class.AlterableConfig(
                name=key, config_operation=1 if value is None else 0, value=value
            )
            for key, value in configs.items()
        ],
    )
    result = client.call(request_class(resources=[resource])).responses[0]
    check(result.error_code, f"topic {name}", result.error_message)


def list_offsets(client: Client, topic: Any, timestamp: int) -> dict[int, int]:
    """Partition -> offset at EARLIEST, LATEST or a timestamp in milliseconds (-1: none)."""
    by_leader: dict[int, list[int]] = {}
    for partition in topic.partitions:
        by_leader.setdefault(partition.leader_id, []).append(partition.partition_index)
    found: dict[int, int] = {}
    request_class = m.ListOffsetsRequest
    for leader, indexes in by_leader.items():
        wanted = request_class.ListOffsetsTopic(
            name=topic.name,
            partitions=[
                request_class.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                for index in indexes
            ],
        )
        response = client.call(request_class(replica_id=-1, topics=[wanted]), leader)
        for partition in response.topics[0].partitions:
            check(partition.error_code, f"{topic.name}-{partition.partition_index}")
            found[partition.partition_index] = partition.offset
    return found


REFUSALS_TAG = 10_000
"""The tagged field of kwire's DescribeLogDirs that says what refuses appends."""


def refusals(client: Client, node_id: int = BOOTSTRAP) -> list[tuple[str, str]]:
    """(partition or log directory, reason) of what a broker cannot write to; () of one that does
    not tell, as other than kwire's."""
    try:
        response = client.call(m.DescribeLogDirsRequest(topics=[]), node_id)
    except ClientError:
        return []
    found = [
        (result.log_dir, "the log directory is offline")
        for result in response.results
        if result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    ]
    for tag, text in response.unknown_tags:
        if tag == REFUSALS_TAG:
            for line in bytes(text).decode(errors="replace").splitlines():
                partition, _, reason = line.partition("\t")
                found.append((partition, reason))
    return found


def list_groups(client: Client) -> list[Any]:
    """The groups of every broker, by id."""
    groups: dict[str, Any] = {}
    for node in client.metadata([]).brokers:
        response = client.call(m.ListGroupsRequest(states_filter=[], types_filter=[]), node.node_id)
        check(response.error_code, "groups")
        groups.update((group.group_id, group) for group in response.groups)
    return [groups[name] for name in sorted(groups)]


def describe_group(client: Client, group: str) -> Any:
    """A classic group's state and members."""
    request = m.DescribeGroupsRequest(groups=[group])
    described = client.call(request, client.coordinator(group)).groups[0]
    check(described.error_code, f"group {group}", getattr(described, "error_message", None))
    return described


def committed_offsets(client: Client, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) -> committed offset of a group, sorted."""
    request = m.OffsetFetchRequest(group_id=group, topics=None)
    response = client.call(request, client.coordinator(group), version_max=7)
    check(response.error_code, f"group {group}")
    offsets = {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }
    return dict(sorted(offsets.items()))


def commit_offsets(client: Client, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets for a group that has no members."""
    request_class = m.OffsetCommitRequest
    topics: dict[str, list[Any]] = {}
    for (topic, index), offset in offsets.items():
        topics.setdefault(topic, []).append(
            request_class.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            )
        )
    request = request_class(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            request_class.OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
    response = client.call(request, client.coordinator(group), version_max=9)
    for answered in response.topics:
        for partition in answered.partitions:
            what = f"group {group}, {answered.name}-{partition.partition_index}"
            check(partition.error_code, what)


def delete_group(client: Client, group: str) -> None:
    """Delete a group that has no members."""
    request = m.DeleteGroupsRequest(groups_names=[group])
    result = client.call(request, client.coordinator(group)).results[0]
    check(result.error_code, f"group {group}", getattr(result, "error_message", None))


def reset_offsets(
    client: Client, group: str, topic_name: str, target: str
) -> dict[tuple[str, int], int]:
    """Commit new offsets for an empty group: `earliest`, `latest`, an offset or `@milliseconds`.

    An offset is kept within what the partition holds. Returns what was committed.
    """
    topic = client.topic(topic_name)
    first = list_offsets(client, topic, EARLIEST)
    last = list_offsets(client, topic, LATEST)
    if target == "earliest":
        offsets = first
    elif target == "latest":
        offsets = last
    elif target.startswith("@") and target[1:].isdecimal():
        by_time = list_offsets(client, topic, int(target[1:]))
        offsets = {index: last[index] if at < 0 else at for index, at in by_time.items()}
    elif target.isdecimal():
        offsets = {index: min(max(int(target), first[index]), last[index]) for index in first}
    else:
        raise ClientError(f"{target}: expected earliest, latest, an offset or @milliseconds")
    committed = {(topic_name, index): offsets[index] for index in sorted(offsets)}
    commit_offsets(client, group, committed)
    return committed


class Produced(NamedTuple):
    """Where a batch went."""

    partition: int
    base_offset: int
    records: int


class Producer:
    """Sends batches of records to a topic, one partition after the other."""

    def __init__(self, client: Client, topic: str, codec: Codec, acks: int = -1) -> None:
        self._client = client
        self._name = topic
        self._codec = codec
        self._acks = acks
        self._clock = SystemClock()
        self._next = 0

    def send(
        self, pairs: Sequence[tuple[bytes | None, bytes | None]], partition: int | None = None
    ) -> Produced:
        """Append (key, value) pairs as one batch; retries while that can help."""
        wall_ms = self._clock.wall_ms()
        records = [Record(0, wall_ms, key, value, []) for key, value in pairs]
        deadline = time.monotonic() + RETRY_TIMEOUT_S
        while True:
            topic = self._client.topic(self._name, create=True)
            chosen = self._choose(topic, partition)
            answer = self._send_to(chosen, build_batch(records, codec=self._codec))
            if answer is None:
                return Produced(chosen.partition_index, -1, len(records))
            if answer.error_code == ErrorCode.NONE:
                if partition is None:
                    self._next += 1
                return Produced(chosen.partition_index, answer.base_offset, len(records))
            if not is_retriable(answer.error_code) or time.monotonic() > deadline:
                what = f"{self._name}-{chosen.partition_index}"
                raise RequestFailed(answer.error_code, what, answer.error_message)
            time.sleep(RETRY_PAUSE_S)

    def _choose(self, topic: Any, wanted: int | None) -> Any:
        partitions = sorted(topic.partitions, key=lambda entry: int(entry.partition_index))
        if wanted is None:
            return partitions[self._next % len(partitions)]
        for entry in partitions:
            if entry.partition_index == wanted:
                return entry
        raise ClientError(f"topic {self._name} has no partition {wanted}")

    def _send_to(self, partition: Any, batch: bytearray) -> Any:
        request_class = m.ProduceRequest
        data = request_class.PartitionProduceData(index=partition.partition_index, records=batch)
        topic = request_class.TopicProduceData(name=self._name, partition_data=[data])
        request = request_class(acks=self._acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        response = self._client.call(request, partition.leader_id, version_max=12)
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
    """Records of a topic from `positions` (partition -> offset), which is moved on.

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
    """One fetch from one leader; moves `positions` on while it yields."""
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
                    positions[index] = record.offset + 1
                    yield Consumed(topic_name, index, record)
            positions[index] = max(positions[index], _end_of(partition, wanted[index]))


def _end_of(partition: Any, offset: int) -> int:
    """The offset behind the last batch of a response, control batches included."""
    end = offset
    if partition.records:
        for _, header in iterate_headers(partition.records):
            end = header.next_offset
    return end


def _visible(partition: Any, committed_only: bool) -> Iterator[Record]:
    """The records of a partition's response that an application sees."""
    if not partition.records:
        return
    pending = sorted(
        (entry.first_offset, entry.producer_id) for entry in partition.aborted_transactions or []
    )
    aborting: dict[int, None] = {}
    try:
        for position, header in iterate_headers(partition.records):
            while committed_only and pending and pending[0][0] <= header.last_offset:
                aborting[pending.pop(0)[1]] = None
            if header.is_control:
                marker = read_batch(partition.records, position)
                if marker and control_type(marker[0]) == ControlType.ABORT:
                    aborting.pop(header.producer_id, None)
            elif not (header.is_transactional and header.producer_id in aborting):
                yield from read_batch(partition.records, position)
    except KafkaError as error:
        raise ClientError(f"partition {partition.partition_index}: {error}") from None


__all__ = [
    "EARLIEST",
    "LATEST",
    "Consumed",
    "Produced",
    "Producer",
    "alter_topic",
    "commit_offsets",
    "committed_offsets",
    "consume",
    "create_topic",
    "delete_group",
    "delete_topic",
    "describe_group",
    "list_groups",
    "list_offsets",
    "reset_offsets",
    "topic_configs",
]
