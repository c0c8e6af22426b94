"""What a shard that was loaded still has of deleted topics.

Offsets go in the walk that a deletion begins (`expiry.py`); where the shard is loaded anew before
its end, or led by another broker, that walk is lost. So a load begins two walks: at once over what
this broker has seen go, and, once the metadata here has all that any coordinator of the shard can
have known before, over what is of no topic that there is. Not before: the last coordinator may have
known a topic that this broker is yet to hear of. So the leader of the quorum has to tell, after the
load, how far the metadata goes, and that has to be published here. Apache Kafka 4.4 does neither:
there they stay until offsets.retention.minutes is over, and nobody is told of them who asks by a
topic's id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from kwire.coordinator.deleted_topics import DeletedTopics
from kwire.coordinator.group.kinds import GroupDeadlines, TimerAction, TimerKey
from kwire.coordinator.group.offset_records import offset_tombstone
from kwire.coordinator.group.share import state_partitions
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import NO_ID
from kwire.coordinator.group.topics import Topics
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import KafkaError

MISSED_TIMER: TimerKey = ("missed-deletions",)
SLICE_SIZE = 5000
"""Groups and their offsets: a slice is about 2 ms."""
SETTLED_MS = 5 * 60_000
"""After the load: a leader of the quorum that was replaced and has not noticed has given up."""
ASK_AGAIN_MS = 10_000
"""Until then the metadata may be complete."""

Gone = Callable[[str, bytes], bool]
"""Whether what was committed for a topic of this name and id (NO_ID where it was not told) is of
one that has gone."""


class MissedDeletions:
    """The two walks, in slices. Soft state: a load begins them again."""

    def __init__(
        self,
        storage: GroupStorage,
        deadlines: GroupDeadlines,
        topics: Topics,
        deleted: DeletedTopics,
    ) -> None:
        self._storage = storage
        self._deadlines = deadlines
        self._topics = topics
        self._deleted = deleted
        self._settled_ms = 0
        self._gone: Gone = self._has_been_seen_going
        self._left: deque[str] = deque()
        self.timers: dict[str, TimerAction] = {
            MISSED_TIMER[0]: lambda key, moment: self.go_on(moment)
        }

    def start(self, moment: Moment) -> None:
        """The shard is loaded."""
        self._settled_ms = moment.now_ms + SETTLED_MS
        if self._deleted:
            self._left.extend(self._group_ids())
        self._deadlines.schedule(MISSED_TIMER, moment.now_ms if self._left else self._settled_ms)

    def go_on(self, moment: Moment) -> Result[None]:
        """One slice: tombstones for offsets, share groups without their state."""
        if not self._left:
            if not self._topics.has_all_of(self._settled_ms):
                self._deadlines.schedule(MISSED_TIMER, moment.now_ms + ASK_AGAIN_MS)
                return Result()
            self._gone = self._is_not_there
            self._left.extend(self._group_ids())
        made: list[CoordinatorRecord] = []
        found: list[str] = []
        budget = SLICE_SIZE
        while self._left and budget > 0:
            group_id = self._left.popleft()
            committed = self._storage.offsets.by_group.get(group_id, {})
            budget -= 1 + sum(map(len, committed.values()))
            records = self._records(group_id)
            if records:
                made += records
                found.append(group_id)
        if self._left:
            self._deadlines.schedule(MISSED_TIMER, moment.now_ms)
        elif self._gone == self._has_been_seen_going:
            self._deadlines.schedule(MISSED_TIMER, self._settled_ms)

        def refused(error: KafkaError) -> None:
            self._left.extend(found)
            self._deadlines.schedule(MISSED_TIMER, moment.now_ms + RETRY_MS)

        return Result(made, None, refused=refused, atomic=False)

    def _group_ids(self) -> list[str]:
        storage = self._storage
        return list(
            dict.fromkeys(
                (*storage.offsets.by_group, *storage.open_transactions, *storage.share.groups)
            )
        )

    def _has_been_seen_going(self, name: str, topic_id: bytes) -> bool:
        return topic_id in self._deleted

    def _is_not_there(self, name: str, topic_id: bytes) -> bool:
        if topic_id == NO_ID:
            return self._topics.find(name) is None
        return self._topics.name_of(topic_id) is None

    def _records(self, group_id: str) -> list[CoordinatorRecord]:
        made = offset_tombstones(self._storage, group_id, self._gone)
        group = self._storage.share.groups.get(group_id)
        if group is not None:
            record = state_partitions.without_topics(group_id, group, lambda x: self._gone("", x))
            if record is not None:
                made.append(record)
        return made


def offset_tombstones(
    storage: GroupStorage, group_id: str, is_gone: Gone, names: Collection[str] | None = None
) -> list[CoordinatorRecord]:
    """Of what the group has committed, in open transactions too; of topics of these `names`, where
    no others can have gone."""
    stores = [storage.offsets]
    stores += [
        storage.pending[producer_id] for producer_id in storage.open_transactions.get(group_id, ())
    ]
    stale: dict[tuple[str, int], bool] = {}
    for store in stores:
        committed = store.by_group.get(group_id, {})
        for topic in committed if names is None else names:
            for partition, stored in committed.get(topic, {}).items():
                # A tombstone takes the commits of all stores: none of them may be newer.
                old = is_gone(topic, stored.topic_id)
                stale[topic, partition] = old and stale.get((topic, partition), True)
    return [
        offset_tombstone(group_id, topic, partition)
        for (topic, partition), old in stale.items()
        if old
    ]
