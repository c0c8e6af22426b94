"""A partition is given another leader, as an administrator does it: another order of its replicas,
then an election of the one that is preferred now."""

from __future__ import annotations

from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.protocol import messages as m

TIMEOUT_MS = 5_000


class Led(NamedTuple):
    """A partition, who leads it, and who else could: replicas in sync, in the order of replicas."""

    topic: str
    partition: int
    leader: int
    others: tuple[int, ...]
    replicas: tuple[int, ...]


async def move_leader(client: Cluster, led: Led, to: int) -> None:
    """ClientError where no controller answers; it may be done or not, then."""
    shape = m.AlterPartitionReassignmentsRequest
    partition = shape.ReassignablePartition(
        partition_index=led.partition,
        replicas=[to, *(one for one in led.replicas if one != to)],
    )
    topic = shape.ReassignableTopic(name=led.topic, partitions=[partition])
    await client.call(shape(topics=[topic], timeout_ms=TIMEOUT_MS))
    elections = m.ElectLeadersRequest
    named = elections.TopicPartitions(topic=led.topic, partitions=[led.partition])
    await client.call(elections(topic_partitions=[named], timeout_ms=TIMEOUT_MS))
