"""The topics that this broker has seen go, for shards that are loaded afterwards.

What is to be done for a deleted topic is soft state of a shard. One that is loaded anew meanwhile,
or comes from another broker that had not done it, asks here. A topic's id is never used again.
"""

from __future__ import annotations

from collections.abc import Iterable

TOPICS_MAX = 20_000
"""The newest are remembered."""


class DeletedTopics:
    """Ids of topics."""

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: dict[bytes, None] = {}

    def add(self, topic_ids: Iterable[bytes]) -> None:
        """They have gone."""
        ids = self._ids
        for topic_id in topic_ids:
            ids[topic_id] = None
        while len(ids) > TOPICS_MAX:
            del ids[next(iter(ids))]

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self._ids

    def __bool__(self) -> bool:
        return bool(self._ids)
