"""Topics as Metadata tells of them, encoded, until they change.

Clients ask for all topics again and again, and of ten thousand partitions nearly all are as they
were. Kept are topics without an error, each as one client sees it: by listener and version.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.kraft.images.delta import MetadataDelta

VIEWS_MAX = 8

View: TypeAlias = dict[bytes, tuple[bytes, int]]
"""Topic id -> (encoded, how many error codes are in it, all of them 0)."""


class DescribedTopics:
    """The topics of a node. `changes` is how often a topic, a partition or a broker has changed."""

    __slots__ = ("_views", "changes")

    def __init__(self) -> None:
        self.changes = 0
        self._views: dict[tuple[str, int], View] = {}

    def view(self, listener_name: str, version: int) -> View:
        """What is known; whoever describes a topic adds it. A view is of one state of the brokers:
        when that changes there is another."""
        key = (listener_name, version)
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= VIEWS_MAX:
                del self._views[next(iter(self._views))]
            view = self._views[key] = {}
        return view

    def applied(self, delta: MetadataDelta) -> None:
        """Committed metadata."""
        if delta.brokers or delta.partitions or delta.topics_deleted:
            self.changes += 1
        if delta.brokers:
            self._views.clear()
            return
        changed = dict.fromkeys(topic_id for topic_id, _ in delta.partitions)
        changed |= dict.fromkeys(delta.topics_deleted)
        for view in self._views.values():
            for topic_id in changed:
                view.pop(topic_id, None)
