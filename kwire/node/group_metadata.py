"""What consumer groups see of the metadata: topics, and the configs of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kwire.config.dynamic import DynamicConfig
from kwire.config.values import TypedValue, Value
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


class GroupConfigs:
    """The resolved configs of groups, kept until configs change."""

    def __init__(self, config: DynamicConfig) -> None:
        self._config = config
        self._resolved: dict[str, Mapping[str, Value]] = {}

    def value(self, group_id: str, name: str) -> TypedValue:
        """A group config, such as consumer.session.timeout.ms, for one group."""
        dynamic = self._config
        key = group_id if dynamic.group_overrides(group_id) else ""
        values = self._resolved.get(key)
        if values is None:
            values = self._resolved[key] = dynamic.group_values(group_id)
        return values[name]

    def changed(self) -> None:
        """Configs of brokers or groups have changed."""
        self._resolved.clear()
