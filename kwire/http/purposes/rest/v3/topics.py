"""Topics, their partitions and replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kwire.client.cluster import Cluster, Topic
from kwire.client.errors import check
from kwire.client.topics import TIMEOUT_MS, Topics
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.v3.failures import as_v3, missing
from kwire.http.purposes.rest.v3.links import Links, links_of
from kwire.http.purposes.rest.v3.shapes import (
    CreateTopicRequest,
    OfCluster,
    OfClusterTopic,
    OfPartition,
    OfReplica,
    PartitionData,
    PartitionDataList,
    ReplicaData,
    ReplicaDataList,
    TopicData,
    TopicDataList,
    UpdatePartitionCountRequest,
)
from kwire.protocol import messages as m

TAG = "v3: topics"
PARTITION_MAX = 10_000

_Partition: TypeAlias = "m.MetadataResponse.MetadataResponsePartition"
_Assignment: TypeAlias = "m.CreateTopicsRequest.CreatableReplicaAssignment"


def _topic(
    links: Links, name: str, *, is_internal: bool = False, partitions: int = 0, replicas: int = 0
) -> TopicData:
    return TopicData(
        "KafkaTopic",
        links.metadata("topics", name, name=f"topic={name}"),
        links.cluster_id,
        name,
        is_internal,
        replicas,
        partitions,
        links.related("topics", name, "partitions"),
        links.related("topics", name, "configs"),
        links.related("topics", name, "partitions", "-", "reassignments"),
    )


def _of_metadata(links: Links, topic: Topic) -> TopicData:
    replicas = len(topic.partitions[0].replica_nodes) if topic.partitions else 0
    return _topic(
        links,
        topic.name or "",
        is_internal=topic.is_internal,
        partitions=len(topic.partitions),
        replicas=replicas,
    )


async def asked_anew(cluster: Cluster, name: str) -> Topic:
    """The topic as it is now; ClientError."""
    cluster.forget_topic(name)
    return await cluster.topic(name)


@as_v3
async def topics(call: Call[OfCluster, Nothing]) -> Reply:
    """All that the caller may see."""
    links = await links_of(call, call.parameters.cluster_id)
    found = await Topics(call.client.cluster).listed()
    data = [_of_metadata(links, topic) for topic in found]
    return Reply(200, TopicDataList("KafkaTopicList", links.listed("topics"), data))


@as_v3
async def topic(call: Call[OfClusterTopic, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    found = await asked_anew(call.client.cluster, call.parameters.topic_name)
    return Reply(200, _of_metadata(links, found))


@as_v3
async def create(call: Call[OfCluster, CreateTopicRequest]) -> Reply:
    """Create a topic, or see whether it could be."""
    links = await links_of(call, call.parameters.cluster_id)
    asked = call.body
    name = asked.topic_name
    kind = m.CreateTopicsRequest
    assignments = _assignments(asked.replicas_assignments or {})
    partitions, replicas = asked.partitions_count or -1, asked.replication_factor or -1
    one = kind.CreatableTopic(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else replicas,
        assignments=assignments,
        configs=[
            kind.CreatableTopicConfig(name=config.name, value=config.value)
            for config in asked.configs or []
        ],
    )
    is_tried = bool(asked.validate_only)
    request = kind(topics=[one], timeout_ms=TIMEOUT_MS, validate_only=is_tried)
    cluster = call.client.cluster
    result = (await cluster.call(request)).topics[0]
    check(result.error_code, f"topic {name}", result.error_message)
    made = _topic(
        links,
        name,
        partitions=max(0, result.num_partitions),
        replicas=max(0, result.replication_factor),
    )
    if is_tried:
        return Reply(200, made)
    await cluster.topic(name, is_new=True)
    return Reply(201, made, {"location": made.metadata.self})


def _assignments(asked: Mapping[str, Sequence[int]]) -> list[_Assignment]:
    found: list[_Assignment] = []
    for text, brokers in asked.items():
        if not (text.isascii() and text.isdigit() and int(text[:10]) < PARTITION_MAX):
            field = f"replicas_assignments.{text[:20]}"
            message = f"{field}: expected the number of a partition"
            raise Problem(400, "invalid_body", message, field=field)
        assignment = m.CreateTopicsRequest.CreatableReplicaAssignment(
            partition_index=int(text), broker_ids=list(brokers)
        )
        found.append(assignment)
    return found


@as_v3
async def update(call: Call[OfClusterTopic, UpdatePartitionCountRequest]) -> Reply:
    """Give a topic more partitions."""
    links = await links_of(call, call.parameters.cluster_id)
    name, count = call.parameters.topic_name, call.body.partitions_count
    cluster = call.client.cluster
    await Topics(cluster).add_partitions(name, count)
    found = await asked_anew(cluster, name)
    replicas = len(found.partitions[0].replica_nodes)
    # The broker that is asked may not have heard of the new ones yet.
    shown = _topic(links, name, is_internal=found.is_internal, partitions=count, replicas=replicas)
    return Reply(200, shown)


@as_v3
async def delete(call: Call[OfClusterTopic, Nothing]) -> Reply:
    """Delete a topic."""
    await links_of(call, call.parameters.cluster_id)
    await Topics(call.client.cluster).delete(call.parameters.topic_name)
    return Reply(204)


# -- partitions


def _partition(links: Links, name: str, one: _Partition) -> PartitionData:
    index = one.partition_index
    path = ("topics", name, "partitions", index)
    leader = links.related(*path, "replicas", one.leader_id) if one.leader_id >= 0 else None
    return PartitionData(
        "KafkaPartition",
        links.metadata(*path, name=f"topic={name}/partition={index}"),
        links.cluster_id,
        name,
        index,
        leader,
        links.related(*path, "replicas"),
        links.related(*path, "reassignment"),
    )


async def _found(call: Call[OfPartition, Nothing]) -> _Partition:
    name, index = call.parameters.topic_name, call.parameters.partition_id
    for one in (await asked_anew(call.client.cluster, name)).partitions:
        if one.partition_index == index:
            return one
    raise missing("This server does not host this topic-partition.")


@as_v3
async def partitions(call: Call[OfClusterTopic, Nothing]) -> Reply:
    """Those of a topic."""
    links = await links_of(call, call.parameters.cluster_id)
    name = call.parameters.topic_name
    found = (await asked_anew(call.client.cluster, name)).partitions
    data = [_partition(links, name, one) for one in sorted(found, key=_index_of)]
    at = links.listed("topics", name, "partitions")
    return Reply(200, PartitionDataList("KafkaPartitionList", at, data))


def _index_of(one: _Partition) -> int:
    return one.partition_index


@as_v3
async def partition(call: Call[OfPartition, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    return Reply(200, _partition(links, call.parameters.topic_name, await _found(call)))


def _replica(links: Links, name: str, one: _Partition, broker_id: int) -> ReplicaData:
    index = one.partition_index
    return ReplicaData(
        "KafkaReplica",
        links.metadata(
            *("topics", name, "partitions", index, "replicas", broker_id),
            name=f"topic={name}/partition={index}/replica={broker_id}",
        ),
        links.cluster_id,
        name,
        index,
        broker_id,
        broker_id == one.leader_id,
        broker_id in one.isr_nodes,
        links.related("brokers", broker_id),
    )


@as_v3
async def replicas(call: Call[OfPartition, Nothing]) -> Reply:
    """Those of a partition."""
    links = await links_of(call, call.parameters.cluster_id)
    name, index = call.parameters.topic_name, call.parameters.partition_id
    one = await _found(call)
    data = [_replica(links, name, one, broker_id) for broker_id in one.replica_nodes]
    at = links.listed("topics", name, "partitions", index, "replicas")
    return Reply(200, ReplicaDataList("KafkaReplicaList", at, data))


@as_v3
async def replica(call: Call[OfReplica, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    asked = call.parameters
    of = OfPartition(asked.cluster_id, asked.topic_name, asked.partition_id)
    one = await _found(Call(call.client, of, call.body, call.url))
    if asked.broker_id not in one.replica_nodes:
        raise missing(f"Broker {asked.broker_id} has no replica of it.")
    return Reply(200, _replica(links, asked.topic_name, one, asked.broker_id))


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    base = f"{prefix}/clusters/{{cluster_id}}/topics"
    one = base + "/{topic_name}"
    of_partition = one + "/partitions/{partition_id}"
    return [
        Route(
            "GET",
            base,
            topics,
            summary="List topics",
            tag=TAG,
            parameters=OfCluster,
            body=Nothing,
            answers={200: Answered(TopicDataList, "The topics that the caller may see.")},
            refusals=(404,),
        ),
        Route(
            "POST",
            base,
            create,
            summary="Create a topic",
            tag=TAG,
            parameters=OfCluster,
            body=CreateTopicRequest,
            answers={
                201: Answered(TopicData, "It is there."),
                200: Answered(TopicData, "It could be created (`validate_only`)."),
            },
            refusals=(404,),
        ),
        *_of_topic(one),
        Route(
            "GET",
            one + "/partitions",
            partitions,
            summary="List partitions",
            tag=TAG,
            parameters=OfClusterTopic,
            body=Nothing,
            answers={200: Answered(PartitionDataList, "The partitions.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            of_partition,
            partition,
            summary="Get a partition",
            tag=TAG,
            parameters=OfPartition,
            body=Nothing,
            answers={200: Answered(PartitionData, "The partition.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            of_partition + "/replicas",
            replicas,
            summary="List replicas",
            tag=TAG,
            parameters=OfPartition,
            body=Nothing,
            answers={200: Answered(ReplicaDataList, "The replicas.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            of_partition + "/replicas/{broker_id}",
            replica,
            summary="Get a replica",
            tag=TAG,
            parameters=OfReplica,
            body=Nothing,
            answers={200: Answered(ReplicaData, "The replica.")},
            refusals=(404,),
        ),
    ]


def _of_topic(path: str) -> list[AnyRoute]:
    return [
        Route(
            "GET",
            path,
            topic,
            summary="Get a topic",
            tag=TAG,
            parameters=OfClusterTopic,
            body=Nothing,
            answers={200: Answered(TopicData, "The topic.")},
            refusals=(404,),
        ),
        Route(
            "PATCH",
            path,
            update,
            summary="Give a topic more partitions",
            tag=TAG,
            parameters=OfClusterTopic,
            body=UpdatePartitionCountRequest,
            answers={200: Answered(TopicData, "The topic.")},
            refusals=(404,),
        ),
        Route(
            "DELETE",
            path,
            delete,
            summary="Delete a topic",
            tag=TAG,
            parameters=OfClusterTopic,
            body=Nothing,
            answers={204: Answered(None, "It is gone.")},
            refusals=(404,),
        ),
    ]
