"""What a topic is: its partitions, who leads them, and which offsets they have."""

from __future__ import annotations

from msgspec import Struct

from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.shapes import OfTopic


class PartitionMetadata(Struct, frozen=True):
    """One partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    high_watermark: int
    log_start_offset: int


class TopicMetadata(Struct, frozen=True):
    """A topic and its partitions."""

    topic: str
    partitions: list[PartitionMetadata]


async def metadata(call: Call[OfTopic, Nothing]) -> Reply:
    """Asked anew each time: who asks wants to see what has changed."""
    name = call.parameters.topic
    cluster = call.client.cluster
    cluster.forget_topic(name)
    topic = await cluster.topic(name)
    offsets = Offsets(cluster)
    first = await offsets.of_topic(name, EARLIEST)
    last = await offsets.of_topic(name, LATEST)
    partitions = [
        PartitionMetadata(
            one.partition_index,
            one.leader_id,
            one.leader_epoch,
            list(one.replica_nodes),
            list(one.isr_nodes),
            last.get(one.partition_index, -1),
            first.get(one.partition_index, -1),
        )
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
    return Reply(200, TopicMetadata(name, partitions))


ROUTES: list[AnyRoute] = [
    Route(
        "GET",
        "/topics/{topic}/metadata",
        metadata,
        summary="The partitions of a topic, who leads them, and their offsets",
        tag="topics",
        parameters=OfTopic,
        body=Nothing,
        answers={200: Answered(TopicMetadata, "What is known of it now.")},
        refusals=(404,),
    ),
]
