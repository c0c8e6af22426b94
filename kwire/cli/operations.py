"""What the commands do, on top of `Client`: topics and where to read them. No output in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kwire.cli.client import BOOTSTRAP, Client, Topic
from kwire.client.errors import ClientError, check
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

EARLIEST = -2
LATEST = -1
TIMEOUT_MS = 30_000
DIGITS_MAX = 18
"""Of an offset or a time in milliseconds: those of 64 bits."""
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32

DescribedConfig: TypeAlias = "m.DescribeConfigsResponse.DescribeConfigsResourceResult"


def create_topic(
    client: Client, name: str, partitions: int, replication: int, configs: Mapping[str, str]
) -> m.CreateTopicsResponse.CreatableTopicResult:
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


def topic_configs(client: Client, name: str) -> list[DescribedConfig]:
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
    return sorted(result.configs, key=lambda entry: entry.name)


def alter_topic(client: Client, name: str, configs: Mapping[str, str | None]) -> None:
    """Set a topic's configs; None takes one back to its default."""
    _alter(client, TOPIC_RESOURCE, name, f"topic {name}", configs)


def alter_group(client: Client, name: str, configs: Mapping[str, str | None]) -> None:
    """Set a group's configs, before or while there is such a group; None as for a topic."""
    _alter(client, GROUP_RESOURCE, name, f"group {name}", configs)


def _alter(
    client: Client, kind: int, name: str, what: str, configs: Mapping[str, str | None]
) -> None:
    request_class = m.IncrementalAlterConfigsRequest
    resource = request_class.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            request_class.AlterableConfig(
                name=key, config_operation=1 if value is None else 0, value=value
            )
            for key, value in configs.items()
        ],
    )
    result = client.call(request_class(resources=[resource])).responses[0]
    check(result.error_code, what, result.error_message)


def list_offsets(client: Client, topic: Topic, timestamp: int) -> dict[int, int]:
    """Partition -> offset at EARLIEST, LATEST or a timestamp in milliseconds (-1: none)."""
    by_leader: dict[int, list[int]] = {}
    for partition in topic.partitions:
        by_leader.setdefault(partition.leader_id, []).append(partition.partition_index)
    found: dict[int, int] = {}
    request_class = m.ListOffsetsRequest
    for leader, indexes in by_leader.items():
        wanted = request_class.ListOffsetsTopic(
            name=topic.name or "",
            partitions=[
                request_class.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                for index in indexes
            ],
        )
        response = client.call(request_class(replica_id=-1, topics=[wanted]), leader)
        for answered in response.topics[0].partitions:
            check(answered.error_code, f"{topic.name}-{answered.partition_index}")
            found[answered.partition_index] = answered.offset
    return found


REFUSALS_TAG = 10_000
"""The tagged field of kwire's DescribeLogDirs that says why a broker is not ready."""


def refusals(client: Client, node_id: int = BOOTSTRAP) -> list[tuple[str, str]]:
    """(partition, log directory or node, reason) of what keeps a broker from being ready; nothing
    of one that does not tell, as other than kwire's."""
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


def offsets_at(client: Client, topic_name: str, target: str) -> dict[tuple[str, int], int]:
    """(topic, partition) -> offset of `earliest`, `latest`, an offset, `-N` or `@milliseconds`.

    `-N` is N records before the end. An offset is kept within what the partition holds.
    """
    topic = client.topic(topic_name)
    first = list_offsets(client, topic, EARLIEST)
    last = list_offsets(client, topic, LATEST)
    number = target[1:] if target[:1] in ("@", "-") else target
    if target in ("earliest", "beginning"):
        offsets = first
    elif target in ("latest", "end"):
        offsets = last
    elif not (number.isascii() and number.isdecimal() and len(number) <= DIGITS_MAX):
        raise ClientError(f"{target}: expected earliest, latest, an offset, -N or @milliseconds")
    elif target[0] == "@":
        by_time = list_offsets(client, topic, int(number))
        offsets = {index: last[index] if at < 0 else at for index, at in by_time.items()}
    elif target[0] == "-":
        offsets = {index: max(last[index] - int(number), first[index]) for index in first}
    else:
        offsets = {index: min(max(int(number), first[index]), last[index]) for index in first}
    return {(topic_name, index): offsets[index] for index in sorted(offsets)}
