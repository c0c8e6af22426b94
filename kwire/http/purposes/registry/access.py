"""Who may read and write schemas: whoever may read and write the topic they are kept in.

The broker is asked, as the caller; what it allows is good for RIGHTS_S. What is read and written
goes over the caller's own connections too, so that the broker has the last word.
"""

from __future__ import annotations

import weakref

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.http.purposes.registry.topic import named
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.security.acl import Operation

RIGHTS_S = 5.0
VERSION_MAX = 10
"""Of Metadata: the last one that names all topics."""
EVERYTHING = -1
"""The bits of all operations: of a topic that is not there yet, Kafka decides when it is made."""


class Access:
    """See the module."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known: weakref.WeakKeyDictionary[Cluster, tuple[float, int]] = (
            weakref.WeakKeyDictionary()
        )

    async def check(self, cluster: Cluster, operation: Operation) -> None:
        """RegistryError 403 where the caller must not."""
        known = self._known.get(cluster)
        if known is not None and cluster.loop.time() < known[0] and known[1] >> operation & 1:
            return
        if not await self._operations(cluster) >> operation & 1:
            raise RegistryError(
                Code.FORBIDDEN, f"{operation.name} on topic {self._topic} is needed"
            )

    async def _operations(self, cluster: Cluster) -> int:
        now_s = cluster.loop.time()
        kind = m.MetadataRequest
        request = kind(
            topics=[kind.MetadataRequestTopic(name=self._topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        try:
            response = await cluster.retrying(
                lambda: cluster.call(request, version_max=VERSION_MAX)
            )
        except ClientError as error:
            raise named(error) from None
        topic = response.topics[0]
        operations = topic.topic_authorized_operations
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            operations = 0
        elif topic.error_code or operations < 0:
            operations = EVERYTHING
        if topic.error_code == ErrorCode.NONE:
            self._known[cluster] = now_s + RIGHTS_S, operations
        return operations
