"""Share groups for `kwire group`: described, their offsets read and altered."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.cli.client import Client
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

SHARE = "share"
ABSENT = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


def find(client: Client, group: str) -> m.ShareGroupDescribeResponse.DescribedGroup | None:
    """A share group's state and members; None where there is none of that name, or the broker has
    no share groups."""
    try:
        return client.ask(lambda admin: admin.groups.describe_share(group))
    except RequestFailed as error:
        if error.code in ABSENT:
            return None
        raise
    except ClientError as error:
        if "ShareGroupDescribe" in str(error):  # an older broker
            return None
        raise


def refuse(client: Client, group: str) -> None:
    """ClientError where a group is a share group: it has no offsets to commit."""
    try:
        is_shared = find(client, group) is not None
    except RequestFailed as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # a share group of hidden topics
            raise
        is_shared = True
    if is_shared:
        raise ClientError(f"group {group} is a share group: work for it with --share {group}")


def other_kind(client: Client, group: str) -> str | None:
    """What a group is that is no share group, in small letters; None where there is none."""
    listed = client.ask(lambda admin: admin.groups.listed())
    kinds = [one.group_type.lower() for one in listed if one.group_id == group]
    return kinds[0] if kinds and kinds[0] != SHARE else None


def offsets(client: Client, group: str) -> list[tuple[str, int, int | None, int | None]]:
    """(topic, partition, where the group begins, records from there on that are not delivered for
    good), sorted; None for what is not known."""
    shape = m.DescribeShareGroupOffsetsRequest
    asked = shape.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    found = client.call(shape(groups=[asked]), client.coordinator(group)).groups[0]
    check(found.error_code, f"group {group}", found.error_message)
    rows: list[tuple[str, int, int | None, int | None]] = []
    for topic in found.topics:
        for x in topic.partitions:
            what = f"group {group}, {topic.topic_name}-{x.partition_index}"
            check(x.error_code, what, x.error_message)
            start = None if x.start_offset == -1 else x.start_offset
            rows.append((topic.topic_name, x.partition_index, start, None if x.lag < 0 else x.lag))
    return sorted(rows, key=lambda row: row[:2])


def alter(client: Client, group: str, wanted: Mapping[tuple[str, int], int]) -> None:
    """Let a share group without members begin at other offsets."""
    shape = m.AlterShareGroupOffsetsRequest
    topics: dict[str, list[m.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]]
    topics = {}
    for (topic, index), offset in wanted.items():
        topics.setdefault(topic, []).append(
            shape.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        )
    request = shape(
        group_id=group,
        topics=[
            shape.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
    response = client.call(request, client.coordinator(group))
    check(response.error_code, f"group {group}", response.error_message)
    for answered in response.responses:
        for x in answered.partitions:
            what = f"group {group}, {answered.topic_name}-{x.partition_index}"
            check(x.error_code, what, x.error_message)
