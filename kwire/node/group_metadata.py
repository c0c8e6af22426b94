"""What groups see of the metadata: topics."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.group.topics import TopicInfo
from kwire.node.published import PublishedMetadata


class PublishedTopics:
    """`kwire.coordinator.group.topics.Topics` over the published metadata."""

    def __init__(self, metadata: PublishedMetadata) -> None:
        self._metadata = metadata

    def find(self, name: str) -> TopicInfo | None:
        topic = self._metadata.image.topics.by_name.get(name)
        return None if topic is None else TopicInfo(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._metadata.image.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return list(self._metadata.image.topics.by_name)

    def version(self) -> int:
        return self._metadata.image.offset

    def has_all_of(self, now_ms: int) -> bool:
        return self._metadata.has_all_of(now_ms)
