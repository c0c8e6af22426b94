"""Sorting the topics of a request about committed offsets: what may pass, what is refused.

Serves OffsetCommit, TxnOffsetCommit and OffsetDelete, whose responses have the same shape. The
refused topics come first in the response, a topic with refused and passed partitions comes once
(measured on Apache Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Generic, TypeVar

from kwire.kraft.images.topics import TopicImage
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

READ_TOPIC = Requires(Operation.READ, ResourceType.TOPIC, "topics[].name", denied=Denied.ENTRY)

AskedT = TypeVar(
    "AskedT",
    "m.OffsetCommitRequest.OffsetCommitRequestTopic",
    "m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic",
    "m.OffsetDeleteRequest.OffsetDeleteRequestTopic",
)
AnswerT = TypeVar(
    "AnswerT",
    "m.OffsetCommitResponse.OffsetCommitResponseTopic",
    "m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic",
    "m.OffsetDeleteResponse.OffsetDeleteResponseTopic",
)


class TopicSorter(Generic[AskedT, AnswerT]):
    """Collects refusals. `refusal(topic, indexes, code)` makes the topic of a response that refuses
    these partitions; `by_id` says that topics are named by id."""

    def __init__(
        self,
        context: RequestContext,
        refusal: Callable[[AskedT, list[int], ErrorCode], AnswerT],
        by_id: bool = False,
    ) -> None:
        self._context: RequestContext = context
        self._refusal: Callable[[AskedT, list[int], ErrorCode], AnswerT] = refusal
        self._key: Callable[[AskedT | AnswerT], str | bytes] = _TOPIC_ID if by_id else _NAME
        self._refused: dict[str | bytes, AnswerT] = {}

    def pass_topics(self, topics: list[AskedT]) -> list[AskedT]:
        """The topics that exist and may be read, with name and id, and with those of their
        partitions that exist. Everything else is refused: TOPIC_AUTHORIZATION_FAILED,
        UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID."""
        passed = []
        for topic in topics:
            known = self._known(topic)
            if known is not None:
                self._pass_partitions(topic, known)
                if topic.partitions:
                    passed.append(topic)
        return passed

    @property
    def refused_any(self) -> bool:
        return bool(self._refused)

    def merge(self, topics: list[AnswerT]) -> list[AnswerT]:
        """The topics of the coordinator's response behind the refused ones."""
        merged = dict(self._refused)
        for topic in topics:
            key = self._key(topic)
            if key in merged:
                merged[key].partitions += topic.partitions
            else:
                merged[key] = topic
        return list(merged.values())

    def _known(self, topic: AskedT) -> TopicImage | None:
        """The topic in the metadata, None when it was refused."""
        image = self._context.parts.metadata.image.topics
        key = self._key(topic)
        if isinstance(key, bytes):
            known = image.by_id.get(key)
            if known is None:
                self._refuse_all(topic, ErrorCode.UNKNOWN_TOPIC_ID)
                return None
            name = known.name
        else:
            name = key
            known = image.by_name.get(name)
        if not self._context.allows(READ_TOPIC, name):
            self._refuse_all(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return None
        if known is None:
            self._refuse_all(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return known

    def _pass_partitions(self, topic: AskedT, known: TopicImage) -> None:
        there = known.partitions
        missing = [x.partition_index for x in topic.partitions if x.partition_index not in there]
        if missing:
            self._refuse(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            topic.partitions = [x for x in topic.partitions if x.partition_index in there]
        topic.name = known.name
        if hasattr(topic, "topic_id"):
            topic.topic_id = known.topic_id

    def _refuse_all(self, topic: AskedT, code: ErrorCode) -> None:
        self._refuse(topic, [x.partition_index for x in topic.partitions], code)

    def _refuse(self, topic: AskedT, indexes: list[int], code: ErrorCode) -> None:
        key = self._key(topic)
        refusal = self._refusal(topic, indexes, code)
        refused = self._refused.setdefault(key, refusal)
        if refused is not refusal:
            refused.partitions += refusal.partitions


_NAME, _TOPIC_ID = attrgetter("name"), attrgetter("topic_id")
