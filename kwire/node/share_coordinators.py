"""Where share coordinators are, by the published metadata."""

from __future__ import annotations

from collections.abc import Callable

from kwire.api.shared.auto_create import SHARE_GROUP_STATE
from kwire.coordinator.partitioner import partition_for
from kwire.node.published import PublishedMetadata
from kwire.share.keys import SharePartitionKey, coordinator_key
from kwire.share.persister import Persister


class PublishedShareCoordinators:
    """`kwire.share.coordinator_persister.Coordinators`; `create_topic(name)` has the topic of the
    state created where it is missing."""

    def __init__(
        self,
        node_id: int,
        metadata: PublishedMetadata,
        local: Callable[[], Persister],
        create_topic: Callable[[str], object],
    ) -> None:
        self.node_id = node_id
        self._metadata = metadata
        self._local = local
        self._create_topic = create_topic

    @property
    def local(self) -> Persister:
        return self._local()

    def find(self, key: SharePartitionKey) -> int | None:
        image = self._metadata.image
        topic = image.topics.by_name.get(SHARE_GROUP_STATE)
        if topic is None or not topic.partitions:
            self._create_topic(SHARE_GROUP_STATE)
            return None
        index = partition_for(coordinator_key(*key), len(topic.partitions))
        partition = topic.partitions.get(index)
        broker = None if partition is None else image.brokers.get(partition.leader)
        return broker.broker_id if broker is not None and broker.is_active else None
