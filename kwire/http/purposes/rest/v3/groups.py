"""Consumer groups, of the classic protocol and of KIP-848: members, assignments, lag."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from kwire.client.classic_membership import partitions_of
from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError
from kwire.client.groups import Classic, Groups, Listed, OfConsumerGroup
from kwire.client.offsets import Lag, Offsets, Partition
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.v3 import shapes
from kwire.http.purposes.rest.v3.failures import as_v3, missing
from kwire.http.purposes.rest.v3.links import Links, links_of
from kwire.http.purposes.rest.v3.shapes import (
    ClusterId,
    Group,
    ListMetadata,
    Metadata,
    OfCluster,
    Related,
    Topic,
)
from kwire.http.purposes.rest.v3.shapes import (
    OfConsumerGroup as OfGroup,
)
from kwire.protocol import messages as m

TAG = "v3: consumer groups"
CONSUMER, CLASSIC = "consumer", "classic"
DEAD = "Dead"
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
ConsumerId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1024)]


class OfConsumer(Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a group."""

    cluster_id: ClusterId
    consumer_group_id: Group
    consumer_id: ConsumerId


class OfAssignment(Struct, frozen=True, forbid_unknown_fields=True):
    """A partition that a member has."""

    cluster_id: ClusterId
    consumer_group_id: Group
    consumer_id: ConsumerId
    topic_name: Topic
    partition_id: shapes.Partition


class OfLag(Struct, frozen=True, forbid_unknown_fields=True):
    """A partition that a group reads."""

    cluster_id: ClusterId
    consumer_group_id: Group
    topic_name: Topic
    partition_id: shapes.Partition


class ConsumerGroupData(Struct, frozen=True):
    """A group."""

    kind: str
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    is_simple: bool
    partition_assignor: str
    state: str
    type: str
    is_mixed_consumer_group: bool
    coordinator: Related
    consumers: Related
    lag_summary: Related


class ConsumerGroupDataList(Struct, frozen=True):
    """Groups."""

    kind: str
    metadata: ListMetadata
    data: list[ConsumerGroupData]


class ConsumerData(Struct, frozen=True):
    """A member."""

    kind: str
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    instance_id: str | None
    client_id: str
    assignments: Related


class ConsumerDataList(Struct, frozen=True):
    """Members."""

    kind: str
    metadata: ListMetadata
    data: list[ConsumerData]


class ConsumerAssignmentData(Struct, frozen=True):
    """A partition that a member has."""

    kind: str
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    topic_name: str
    partition_id: int
    partition: Related
    lag: Related


class ConsumerAssignmentDataList(Struct, frozen=True):
    """What a member has."""

    kind: str
    metadata: ListMetadata
    data: list[ConsumerAssignmentData]


class ConsumerLagData(Struct, frozen=True):
    """How far a group is behind in a partition, and who reads it: empty where nobody does."""

    kind: str
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    topic_name: str
    partition_id: int
    current_offset: int
    log_end_offset: int
    lag: int
    consumer_id: str
    instance_id: str | None
    client_id: str


class ConsumerLagDataList(Struct, frozen=True):
    """How far a group is behind."""

    kind: str
    metadata: ListMetadata
    data: list[ConsumerLagData]


class ConsumerGroupLagSummaryData(Struct, frozen=True):
    """Where a group is furthest behind, and by how much in all."""

    kind: str
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    max_lag_consumer_id: str
    max_lag_instance_id: str | None
    max_lag_client_id: str
    max_lag_topic_name: str
    max_lag_partition_id: int
    max_lag: int
    total_lag: int
    max_lag_consumer: Related
    max_lag_partition: Related


# -- groups as Kafka has them


class _Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    partitions: list[Partition]


NOBODY = _Member("", None, "", [])


class _Group(NamedTuple):
    name: str
    state: str
    kind: str
    assignor: str
    is_simple: bool
    members: list[_Member]


def _of_classic(name: str, found: Classic) -> _Group:
    return _Group(
        name,
        found.group_state,
        CLASSIC,
        found.protocol_data,
        not found.protocol_type,
        [
            _Member(one.member_id, one.group_instance_id, one.client_id, _assigned(one))
            for one in found.members
        ],
    )


def _assigned(one: m.DescribeGroupsResponse.DescribedGroupMember) -> list[Partition]:
    """Nothing of a member whose assignment cannot be read: its group may be of something else."""
    try:
        return partitions_of(bytes(one.member_assignment))
    except ClientError:
        return []


def _of_consumer(name: str, found: OfConsumerGroup) -> _Group:
    members = [
        _Member(
            one.member_id,
            one.instance_id,
            one.client_id,
            sorted(
                (topic.topic_name, index)
                for topic in one.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for one in found.members
    ]
    return _Group(name, found.group_state, CONSUMER, found.assignor_name, False, members)


async def _described(cluster: Cluster, name: str, kind: str) -> _Group:
    groups = Groups(cluster)
    if kind == CONSUMER:
        return _of_consumer(name, await groups.describe_consumer(name))
    return _of_classic(name, await groups.describe_classic(name))


def _is_consumers(one: Listed) -> bool:
    """Connect's workers and share groups are groups of something else."""
    kind = one.group_type.lower()
    return kind == CONSUMER or (kind in (CLASSIC, "") and one.protocol_type in ("consumer", ""))


async def _group(cluster: Cluster, name: str) -> _Group:
    """ClientError, Problem 404."""
    for one in await Groups(cluster).listed():
        if one.group_id == name and _is_consumers(one):
            return await _described(cluster, name, one.group_type.lower())
    raise missing(f"There is no consumer group {name}.")


# -- as they are shown


async def _shown(cluster: Cluster, links: Links, group: _Group) -> ConsumerGroupData:
    coordinator = await cluster.coordinator(Coordinator.GROUP, group.name)
    path = ("consumer-groups", group.name)
    return ConsumerGroupData(
        "KafkaConsumerGroup",
        links.metadata(*path, name=f"consumer-group={group.name}"),
        links.cluster_id,
        group.name,
        group.is_simple,
        group.assignor,
        _WORD.sub("_", group.state).upper() or "UNKNOWN",
        group.kind.upper(),
        False,
        links.related("brokers", coordinator),
        links.related(*path, "consumers"),
        links.related(*path, "lag-summary"),
    )


@as_v3
async def groups(call: Call[OfCluster, Nothing]) -> Reply:
    """All that the caller may see."""
    links = await links_of(call, call.parameters.cluster_id)
    cluster = call.client.cluster
    data: list[ConsumerGroupData] = []
    for one in await Groups(cluster).listed():
        if _is_consumers(one):
            found = await _described(cluster, one.group_id, one.group_type.lower())
            data.append(await _shown(cluster, links, found))
    at = links.listed("consumer-groups")
    return Reply(200, ConsumerGroupDataList("KafkaConsumerGroupList", at, data))


@as_v3
async def group(call: Call[OfGroup, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    cluster = call.client.cluster
    found = await _group(cluster, call.parameters.consumer_group_id)
    return Reply(200, await _shown(cluster, links, found))


def _consumer(links: Links, name: str, one: _Member) -> ConsumerData:
    path = ("consumer-groups", name, "consumers", one.member_id)
    return ConsumerData(
        "KafkaConsumer",
        links.metadata(*path, name=f"consumer-group={name}/consumer={one.member_id}"),
        links.cluster_id,
        name,
        one.member_id,
        one.instance_id,
        one.client_id,
        links.related(*path, "assignments"),
    )


@as_v3
async def consumers(call: Call[OfGroup, Nothing]) -> Reply:
    """The members of a group."""
    links = await links_of(call, call.parameters.cluster_id)
    name = call.parameters.consumer_group_id
    found = await _group(call.client.cluster, name)
    data = [_consumer(links, name, one) for one in found.members]
    at = links.listed("consumer-groups", name, "consumers")
    return Reply(200, ConsumerDataList("KafkaConsumerList", at, data))


async def _member(cluster: Cluster, group: str, consumer_id: str) -> _Member:
    found = await _group(cluster, group)
    for one in found.members:
        if one.member_id == consumer_id:
            return one
    raise missing(f"There is no consumer {consumer_id} in the group.")


@as_v3
async def consumer(call: Call[OfConsumer, Nothing]) -> Reply:
    """A member."""
    links = await links_of(call, call.parameters.cluster_id)
    asked = call.parameters
    one = await _member(call.client.cluster, asked.consumer_group_id, asked.consumer_id)
    return Reply(200, _consumer(links, asked.consumer_group_id, one))


def _assignment(
    links: Links, group: str, consumer_id: str, one: Partition
) -> ConsumerAssignmentData:
    topic, index = one
    at = ("consumer-groups", group, "consumers", consumer_id, "assignments")
    return ConsumerAssignmentData(
        "KafkaConsumerAssignment",
        links.metadata(
            *(*at, topic, "partitions", index),
            name=f"consumer-group={group}/consumer={consumer_id}"
            f"/assignment={topic}/partition={index}",
        ),
        links.cluster_id,
        group,
        consumer_id,
        topic,
        index,
        links.related("topics", topic, "partitions", index),
        links.related("consumer-groups", group, "lags", topic, "partitions", index),
    )


@as_v3
async def assignments(call: Call[OfConsumer, Nothing]) -> Reply:
    """What a member has."""
    links = await links_of(call, call.parameters.cluster_id)
    name, consumer_id = call.parameters.consumer_group_id, call.parameters.consumer_id
    one = await _member(call.client.cluster, name, consumer_id)
    data = [_assignment(links, name, consumer_id, each) for each in one.partitions]
    at = links.listed("consumer-groups", name, "consumers", consumer_id, "assignments")
    return Reply(200, ConsumerAssignmentDataList("KafkaConsumerAssignmentList", at, data))


@as_v3
async def assignment(call: Call[OfAssignment, Nothing]) -> Reply:
    """A partition that a member has."""
    asked = call.parameters
    links = await links_of(call, asked.cluster_id)
    one = await _member(call.client.cluster, asked.consumer_group_id, asked.consumer_id)
    wanted = asked.topic_name, asked.partition_id
    if wanted not in one.partitions:
        raise missing(
            f"The consumer {asked.consumer_id} has no partition {'-'.join(map(str, wanted))}."
        )
    found = _assignment(links, asked.consumer_group_id, asked.consumer_id, wanted)
    return Reply(200, found)


# -- lag


async def _lags(cluster: Cluster, name: str) -> list[tuple[Partition, Lag, _Member]]:
    found = await _group(cluster, name)
    owners = {partition: one for one in found.members for partition in one.partitions}
    lags = await Offsets(cluster).lag(name)
    return [(partition, lag, owners.get(partition, NOBODY)) for partition, lag in lags.items()]


def _lag(
    links: Links, name: str, rows: Iterable[tuple[Partition, Lag, _Member]]
) -> list[ConsumerLagData]:
    return [
        ConsumerLagData(
            "KafkaConsumerLag",
            links.metadata(
                *("consumer-groups", name, "lags", topic, "partitions", index),
                name=f"consumer-group={name}/lag={topic}/partition={index}",
            ),
            links.cluster_id,
            name,
            topic,
            index,
            lag.committed,
            lag.end,
            lag.records,
            owner.member_id,
            owner.instance_id,
            owner.client_id,
        )
        for (topic, index), lag, owner in rows
    ]


@as_v3
async def lags(call: Call[OfGroup, Nothing]) -> Reply:
    """Of all partitions in which the group has committed."""
    links = await links_of(call, call.parameters.cluster_id)
    name = call.parameters.consumer_group_id
    data = _lag(links, name, await _lags(call.client.cluster, name))
    at = links.listed("consumer-groups", name, "lags")
    return Reply(200, ConsumerLagDataList("KafkaConsumerLagList", at, data))


@as_v3
async def lag(call: Call[OfLag, Nothing]) -> Reply:
    """Of one partition."""
    asked = call.parameters
    links = await links_of(call, asked.cluster_id)
    wanted = (asked.topic_name, asked.partition_id)
    rows = await _lags(call.client.cluster, asked.consumer_group_id)
    found = _lag(links, asked.consumer_group_id, [row for row in rows if row[0] == wanted])
    if not found:
        raise missing("The group has committed nothing there.")
    return Reply(200, found[0])


@as_v3
async def lag_summary(call: Call[OfGroup, Nothing]) -> Reply:
    """The largest, and all together."""
    links = await links_of(call, call.parameters.cluster_id)
    name = call.parameters.consumer_group_id
    rows = await _lags(call.client.cluster, name)
    if not rows:
        raise missing("The group has committed nothing.")
    (topic, index), most, owner = max(rows, key=lambda row: row[1].records)
    path = ("consumer-groups", name)
    shown = ConsumerGroupLagSummaryData(
        "KafkaConsumerGroupLagSummary",
        links.metadata(*path, "lag-summary", name=f"consumer-group={name}/lag-summary"),
        links.cluster_id,
        name,
        owner.member_id,
        owner.instance_id,
        owner.client_id,
        topic,
        index,
        most.records,
        sum(row[1].records for row in rows),
        links.related(*path, "consumers", owner.member_id),
        links.related("topics", topic, "partitions", index),
    )
    return Reply(200, shown)


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    base = f"{prefix}/clusters/{{cluster_id}}/consumer-groups"
    one = base + "/{consumer_group_id}"
    return [
        Route(
            "GET",
            base,
            groups,
            summary="List consumer groups",
            tag=TAG,
            parameters=OfCluster,
            body=Nothing,
            answers={200: Answered(ConsumerGroupDataList, "The groups that the caller may see.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            one,
            group,
            summary="Get a consumer group",
            tag=TAG,
            parameters=OfGroup,
            body=Nothing,
            answers={200: Answered(ConsumerGroupData, "The group.")},
            refusals=(404,),
        ),
        *_of_consumers(one),
        *_of_lags(one),
    ]


def _of_consumers(path: str) -> list[AnyRoute]:
    member = path + "/consumers/{consumer_id}"
    return [
        Route(
            "GET",
            path + "/consumers",
            consumers,
            summary="List the consumers of a group",
            tag=TAG,
            parameters=OfGroup,
            body=Nothing,
            answers={200: Answered(ConsumerDataList, "The members.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            member,
            consumer,
            summary="Get a consumer",
            tag=TAG,
            parameters=OfConsumer,
            body=Nothing,
            answers={200: Answered(ConsumerData, "The member.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            member + "/assignments",
            assignments,
            summary="List what a consumer is assigned",
            tag=TAG,
            parameters=OfConsumer,
            body=Nothing,
            answers={200: Answered(ConsumerAssignmentDataList, "Its partitions.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            member + "/assignments/{topic_name}/partitions/{partition_id}",
            assignment,
            summary="Get a partition that a consumer is assigned",
            tag=TAG,
            parameters=OfAssignment,
            body=Nothing,
            answers={200: Answered(ConsumerAssignmentData, "The partition.")},
            refusals=(404,),
        ),
    ]


def _of_lags(path: str) -> list[AnyRoute]:
    return [
        Route(
            "GET",
            path + "/lags",
            lags,
            summary="List the lags of a group",
            tag=TAG,
            parameters=OfGroup,
            body=Nothing,
            answers={200: Answered(ConsumerLagDataList, "Of each partition.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            path + "/lags/{topic_name}/partitions/{partition_id}",
            lag,
            summary="Get the lag of a partition",
            tag=TAG,
            parameters=OfLag,
            body=Nothing,
            answers={200: Answered(ConsumerLagData, "The lag.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            path + "/lag-summary",
            lag_summary,
            summary="Get the largest lag of a group",
            tag=TAG,
            parameters=OfGroup,
            body=Nothing,
            answers={200: Answered(ConsumerGroupLagSummaryData, "The largest, and the sum.")},
            refusals=(404,),
        ),
    ]
