"""What goes by itself: offsets past their retention or of deleted topics, groups nobody needs.

Both walk over all groups of the shard, in slices of SLICE_GROUPS, so that a shard with a hundred
thousand groups does not hold the event loop. (KIP-211: an offset's retention counts from the moment
its group became Empty, or for a simple group from the commit; a group that still consumes keeps
the offsets of what it consumes.)
"""

from __future__ import annotations

from collections import deque

from kwire.coordinator.group import records
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.rebalance import ClassicGroups, TimerKey
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.consumer import records as consumer_records
from kwire.coordinator.group.consumer.offsets import is_subscribed
from kwire.coordinator.group.consumer.state import ConsumerGroup
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.storage import StoredOffset
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result

EXPIRY_TIMER: TimerKey = ("expiry",)
DELETION_TIMER: TimerKey = ("deletion",)
SLICE_GROUPS = 500


class Expiry:
    """The two walks. What is left of a walk is soft state; a lost walk starts over."""

    def __init__(self, groups: ClassicGroups, offsets: OffsetOperations) -> None:
        self._groups = groups
        self._offsets = offsets
        self._storage = groups.storage
        self._settings = groups.settings
        self._to_check: deque[str] = deque()
        # (topic name -> id, groups still to look at)
        self._deletions: deque[tuple[dict[str, bytes], deque[str]]] = deque()

    def start(self, moment: Moment) -> None:
        """Set the timer of the next round of expiry."""
        interval_ms = self._settings.offsets_retention_check_interval_ms
        self._groups.deadlines.schedule(EXPIRY_TIMER, moment.now_ms + interval_ms)

    # ------------------------------------------------------------------ retention

    def check(self, moment: Moment) -> Result:
        """One slice of the round: tombstones for expired offsets and for groups without any."""
        if not self._to_check:
            self._to_check.extend([*self._storage.classic, *self._storage.consumer])
        made: list[CoordinatorRecord] = []
        gone: list[str] = []
        for _ in range(min(SLICE_GROUPS, len(self._to_check))):
            group_id = self._to_check.popleft()
            if self._check_group(group_id, moment, made):
                gone.append(group_id)
        if self._to_check:
            self._groups.deadlines.schedule(EXPIRY_TIMER, moment.now_ms)
        else:
            self.start(moment)

        def appended() -> None:
            for group_id in gone:
                self._groups.forget(group_id)

        return Result(made, None, appended, refused=lambda _: True, atomic=False)

    def _check_group(self, group_id: str, moment: Moment, made: list[CoordinatorRecord]) -> bool:
        """Add the tombstones of one group; whether the group itself goes."""
        consumer = self._storage.consumer.get(group_id)
        if consumer is not None:
            return self._check_consumer_group(group_id, consumer, moment, made)
        group = self._groups.look(group_id)
        if group is None:
            return False
        kept = False
        for topic, partitions in self._storage.offsets.by_group.get(group_id, {}).items():
            if group.is_subscribed(topic):
                kept = True
                continue
            for partition, stored in partitions.items():
                if self._expired(group, stored, moment) and not self._storage.has_pending_offset(
                    group_id, topic, partition
                ):
                    made.append(records.offset_tombstone(group_id, topic, partition))
                else:
                    kept = True
        if kept or group_id in self._storage.open_transactions:
            return False
        if group.state is not ClassicState.EMPTY:
            return False
        made.append(records.group_tombstone(group_id))
        return True

    def _check_consumer_group(
        self,
        group_id: str,
        group: ConsumerGroup,
        moment: Moment,
        made: list[CoordinatorRecord],
    ) -> bool:
        """As `_check_group`: offsets expire by their commit, of topics that nobody reads."""
        retention_ms = self._settings.offsets_retention_ms
        kept = False
        for topic, partitions in self._storage.offsets.by_group.get(group_id, {}).items():
            subscribed = is_subscribed(group, topic)
            for partition, stored in partitions.items():
                expired = moment.wall_ms - stored.commit_ms >= retention_ms
                if (
                    expired
                    and not subscribed
                    and not self._storage.has_pending_offset(group_id, topic, partition)
                ):
                    made.append(records.offset_tombstone(group_id, topic, partition))
                else:
                    kept = True
        if kept or group.members or group_id in self._storage.open_transactions:
            return False
        made += consumer_records.group_tombstones(group_id)
        return True

    def _expired(self, group: ClassicGroup, stored: StoredOffset, moment: Moment) -> bool:
        if group.protocol_type is None:
            since_ms = stored.commit_ms
        elif group.state is ClassicState.EMPTY:
            timestamp_ms = group.state_timestamp_ms
            since_ms = stored.commit_ms if timestamp_ms is None else timestamp_ms
        elif group.state is ClassicState.STABLE and group.subscribed_topics is not None:
            since_ms = stored.commit_ms
        else:
            return False
        if stored.expire_ms is not None:
            return moment.wall_ms >= stored.expire_ms
        return moment.wall_ms - since_ms >= self._settings.offsets_retention_ms

    # ------------------------------------------------------------------ deleted topics

    def topics_deleted(self, topics: dict[str, bytes], moment: Moment) -> Result:
        """Topics (name -> id) are gone: their offsets go too. An offset committed for a topic of
        the same name that was made since has another id and stays."""
        self._deletions.append((topics, deque(self._storage.offsets.by_group)))
        for producer_offsets in self._storage.pending.values():
            self._deletions.append((topics, deque(producer_offsets.by_group)))
        return self.delete(moment)

    def delete(self, moment: Moment) -> Result:
        """One slice of it."""
        made: list[CoordinatorRecord] = []
        budget = SLICE_GROUPS
        while self._deletions and budget > 0:
            topics, group_ids = self._deletions[0]
            while group_ids and budget > 0:
                budget -= 1
                made += self._tombstones(group_ids.popleft(), topics)
            if not group_ids:
                self._deletions.popleft()
        if self._deletions:
            self._groups.deadlines.schedule(DELETION_TIMER, moment.now_ms)
        return Result(made, None, refused=lambda _: True, atomic=False)

    def _tombstones(self, group_id: str, topics: dict[str, bytes]) -> list[CoordinatorRecord]:
        stores = [self._storage.offsets]
        stores += [
            self._storage.pending[producer_id]
            for producer_id in self._storage.open_transactions.get(group_id, ())
        ]
        stale: dict[tuple[str, int], bool] = {}
        for store in stores:
            committed = store.by_group.get(group_id, {})
            for topic, topic_id in topics.items():
                for partition, stored in committed.get(topic, {}).items():
                    # A tombstone takes the commits of all stores: none of them may be newer.
                    old = stored.topic_id in (bytes(16), topic_id)
                    stale[topic, partition] = old and stale.get((topic, partition), True)
        return [
            records.offset_tombstone(group_id, topic, partition)
            for (topic, partition), old in stale.items()
            if old
        ]
