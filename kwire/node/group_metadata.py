"""What groups see of the metadata: topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kwire.coordinator.group.topics import TopicInfo
from kwire.kraft.images.metadata_image import MetadataImage


class PublishedTopics:
    """`kwire.coordinator.group.topics.Topics` over the published `image()`."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def find(self, name: str) -> TopicInfo | None:
        topic = self._image().topics.by_name.get(name)
        return None if topic is None else TopicInfo(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._image().topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return list(self._image().topics.by_name)

    def version(self) -> int:
        return self._image().offset
