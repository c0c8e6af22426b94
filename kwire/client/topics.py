"""Topics: made, deleted, extended, listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kwire.client.cluster import Cluster, Topic
from kwire.client.errors import ClientError, check
from kwire.protocol import messages as m

TIMEOUT_MS = 30_000

Created: TypeAlias = "m.CreateTopicsResponse.CreatableTopicResult"


class Topics:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def listed(self) -> list[Topic]:
        """All topics that may be seen, by name."""
        response = await self._cluster.metadata(None)
        for topic in response.topics:
            check(topic.error_code, f"topic {topic.name}")
        return sorted(response.topics, key=lambda topic: topic.name or "")

    async def create(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> Created:
        """Create a topic (-1 partitions or replicas: the broker's defaults); its result, once it
        can be used."""
        kind = m.CreateTopicsRequest
        topic = kind.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[],
            configs=[
                kind.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = kind(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only)
        result = (await self._cluster.call(request)).topics[0]
        check(result.error_code, f"topic {name}", result.error_message)
        if not validate_only:
            try:
                await self._cluster.topic(name, is_new=True)
            except ClientError:
                pass  # it was made; whoever made it may not see it
        return result

    async def delete(self, name: str) -> None:
        """Delete a topic by its name."""
        request = m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=name)],
            topic_names=[name],
            timeout_ms=TIMEOUT_MS,
        )
        result = (await self._cluster.call(request)).responses[0]
        check(result.error_code, f"topic {name}", result.error_message)
        self._cluster.forget_topic(name)

    async def add_partitions(self, name: str, count: int) -> None:
        """Extend a topic to so many partitions in all."""
        kind = m.CreatePartitionsRequest
        topic = kind.CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = kind(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=False)
        result = (await self._cluster.call(request)).results[0]
        check(result.error_code, f"topic {name}", result.error_message)
        self._cluster.forget_topic(name)
