"""Sorting the topics of a request about committed offsets: what may pass, what is refused.

Serves OffsetCommit, TxnOffsetCommit and OffsetDelete, whose responses have the same shape. The
refused topics come first in the response, a topic with refused and passed partitions comes once
(measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from typing import Any

from kwire.protocol.errors import ErrorCode
from kwire.server.authorization import READ, TOPIC
from kwire.server.context import RequestContext


class TopicSorter:
    """Collects refusals. `topic_class` and `partition_class` are the structs of the response."""

    def __init__(
        self, context: RequestContext, topic_class: Any, partition_class: Any, by_id: bool = False
    ) -> None:
        self._context = context
        self._topic_class = topic_class
        self._partition_class = partition_class
        self._by_id = by_id
        self._refused: dict[str | bytes, Any] = {}

    def pass_topics(self, topics: list[Any]) -> list[Any]:
        """The topics that exist and may be read, with name and id, and with those of their
        partitions that exist. Everything else is refused: TOPIC_AUTHORIZATION_FAILED,
        UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID."""
        passed = []
        for topic in topics:
            known = self._known(topic)
            if known is not None:
                topic = self._pass_partitions(topic, known)
                if topic.partitions:
                    passed.append(topic)
        return passed

    @property
    def refused_any(self) -> bool:
        return bool(self._refused)

    def merge(self, topics: list[Any]) -> list[Any]:
        """The topics of the coordinator's response behind the refused ones."""
        merged = dict(self._refused)
        for topic in topics:
            key = topic.topic_id if self._by_id else topic.name
            if key in self._refused:
                merged[key].partitions += topic.partitions
            else:
                merged[key] = topic
        return list(merged.values())

    def _known(self, topic: Any) -> Any:
        """The topic in the metadata, None when it was refused."""
        image = self._context.parts.metadata.image.topics
        if self._by_id:
            known = image.by_id.get(topic.topic_id)
            if known is None:
                self._refuse(topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID)
                return None
            name = known.name
        else:
            name = topic.name
            known = image.by_name.get(name)
        if not self._context.authorize(READ, TOPIC, name):
            self._refuse(topic, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return None
        if known is None:
            self._refuse(topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return known

    def _pass_partitions(self, topic: Any, known: Any) -> Any:
        kept: list[Any] = []
        missing: list[Any] = []
        for x in topic.partitions:
            (kept if x.partition_index in known.partitions else missing).append(x)
        if missing:
            self._refuse(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic.name = known.name
        if hasattr(topic, "topic_id"):
            topic.topic_id = known.topic_id
        topic.partitions = kept
        return topic

    def _refuse(self, topic: Any, partitions: list[Any], code: ErrorCode) -> None:
        key = topic.topic_id if self._by_id else topic.name
        refused = self._refused.get(key)
        if refused is None:
            named = {"topic_id": topic.topic_id} if self._by_id else {"name": topic.name}
            refused = self._refused[key] = self._topic_class(**named, partitions=[])
        refused.partitions += [
            self._partition_class(partition_index=x.partition_index, error_code=code)
            for x in partitions
        ]
