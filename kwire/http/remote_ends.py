"""Where partitions end that the broker does not have: the lag of groups that read them.

A group's coordinator need not have a replica of what the group reads. The leaders are asked by
ListOffsets, as whoever scrapes: what that one may not describe is not told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TypeAlias

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.http.callers import Caller
from kwire.http.logins import CLIENT_ID
from kwire.protocol import messages as m

TopicPartition: TypeAlias = "tuple[str, str]"
"""Topic, and the number of the partition as a label has it."""
Ends: TypeAlias = "Mapping[TopicPartition, int]"
LATEST = -1
CONSUMER = -1
PARTITIONS_MAX = 5000
"""Of a scrape; those beyond have no lag."""
WAIT_S = 2.0
"""For all leaders together: who does not answer costs a scrape no more."""


class RemoteEnds:
    """See the module. `anonymous` is the broker's address for who does not log in, "" for none."""

    def __init__(self, anonymous: str) -> None:
        self._anonymous = anonymous
        self._cluster: Cluster | None = None

    async def of(self, wanted: Iterable[TopicPartition], caller: Caller | None) -> Ends:
        """The high watermarks of those that are told in time."""
        cluster = self._cluster_of(caller)
        partitions = list(islice(dict.fromkeys(wanted), PARTITIONS_MAX))
        if cluster is None or not partitions:
            return {}
        found: dict[TopicPartition, int] = {}
        try:
            async with asyncio.timeout(WAIT_S):
                by_leader = await _leaders(cluster, partitions)
                await asyncio.gather(
                    *(_ask(cluster, leader, led, found) for leader, led in by_leader.items())
                )
        except (ClientError, TimeoutError):
            pass  # what was told until then is shown
        return found

    def _cluster_of(self, caller: Caller | None) -> Cluster | None:
        if caller is not None:
            return caller.cluster
        if self._cluster is None and self._anonymous:
            settings = ConnectionSettings(
                self._anonymous, client_id=CLIENT_ID, retry_timeout_s=WAIT_S
            )
            self._cluster = Cluster(settings)
        return self._cluster


async def _leaders(
    cluster: Cluster, partitions: list[TopicPartition]
) -> dict[int, list[TopicPartition]]:
    wanted = set(partitions)
    response = await cluster.metadata(list(dict.fromkeys(topic for topic, _ in partitions)))
    found: dict[int, list[TopicPartition]] = {}
    for topic in response.topics:
        for one in topic.partitions:
            key = topic.name or "", str(one.partition_index)
            if key in wanted and one.leader_id >= 0:
                found.setdefault(one.leader_id, []).append(key)
    return found


async def _ask(
    cluster: Cluster, leader: int, led: list[TopicPartition], found: dict[TopicPartition, int]
) -> None:
    kind = m.ListOffsetsRequest
    topics: dict[str, list[m.ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, index in led:
        topics.setdefault(topic, []).append(
            kind.ListOffsetsPartition(partition_index=int(index), timestamp=LATEST)
        )
    asked = [kind.ListOffsetsTopic(name=name, partitions=those) for name, those in topics.items()]
    request = kind(replica_id=CONSUMER, topics=asked)
    try:
        response = await cluster.call(request, leader)
    except ClientError:
        return  # the others may answer
    for told in response.topics:
        for one in told.partitions:
            if not one.error_code and one.offset >= 0:
                found[told.name, str(one.partition_index)] = one.offset
