"""What goes by itself: offsets past their retention or of deleted topics, groups nobody needs.

Both walk over all groups of the shard, in slices of SLICE_GROUPS, so that a shard with a hundred
thousand groups does not hold the event loop. What keeps an offset is the kind's to say (KIP-211).
"""

from __future__ import annotations

from collections import deque

from kwire.coordinator.group.kinds import GroupDeadlines, GroupKinds, TimerAction, TimerKey
from kwire.coordinator.group.missed_deletions import offset_tombstones
from kwire.coordinator.group.offset_records import offset_tombstone
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import NO_ID
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import ErrorCode, KafkaError

EXPIRY_TIMER: TimerKey = ("expiry",)
DELETION_TIMER: TimerKey = ("deletion",)
SLICE_GROUPS = 500


class Expiry:
    """The two walks. What is left of a walk is soft state; a lost walk starts over. Nobody waits
    for their results: what the log refuses of a round of expiry is found again by the next one, and
    of deleted topics by a walk over the same groups after a pause."""

    def __init__(
        self,
        storage: GroupStorage,
        kinds: GroupKinds,
        deadlines: GroupDeadlines,
        check_interval_ms: int,
    ) -> None:
        self._storage = storage
        self._kinds = kinds
        self._deadlines = deadlines
        self._check_interval_ms = check_interval_ms
        self._to_check: deque[str] = deque()
        # (topic name -> id, groups still to go through)
        self._deletions: deque[tuple[dict[str, bytes], deque[str]]] = deque()
        self.timers: dict[str, TimerAction] = {
            EXPIRY_TIMER[0]: lambda key, moment: self.check(moment),
            DELETION_TIMER[0]: lambda key, moment: self.delete(moment),
        }

    def start(self, moment: Moment) -> None:
        """Set the timer of the next round of expiry."""
        self._deadlines.schedule(EXPIRY_TIMER, moment.now_ms + self._check_interval_ms)

    # ------------------------------------------------------------------ retention

    def check(self, moment: Moment) -> Result[None]:
        """One slice of the round: tombstones for expired offsets and for groups without any."""
        if not self._to_check:
            self._to_check.extend(self._storage.group_ids())
        made: list[CoordinatorRecord] = []
        gone: list[str] = []
        for _ in range(min(SLICE_GROUPS, len(self._to_check))):
            group_id = self._to_check.popleft()
            if self._check_group(group_id, moment, made):
                gone.append(group_id)
        if self._to_check:
            self._deadlines.schedule(EXPIRY_TIMER, moment.now_ms)
        else:
            self.start(moment)

        def appended() -> None:
            for group_id in gone:
                self._kinds.forget(group_id)

        return Result(made, None, appended, atomic=False)

    def _check_group(self, group_id: str, moment: Moment, made: list[CoordinatorRecord]) -> bool:
        """Add the tombstones of one group; whether the group itself goes."""
        kind = self._kinds.of(group_id)
        if kind is None:
            return False
        group = kind.subscribed_group(group_id)
        kept = False
        for topic, partitions in self._storage.offsets.by_group.get(group_id, {}).items():
            if group.is_subscribed(topic):
                kept = True
                continue
            for partition, stored in partitions.items():
                if group.is_expired(stored, moment) and not self._storage.has_pending_offset(
                    group_id, topic, partition
                ):
                    made.append(offset_tombstone(group_id, topic, partition))
                    self._storage.counts.offset_expirations += 1
                else:
                    kept = True
        if kept or group_id in self._storage.open_transactions:
            return False
        if not kind.expires or kind.deletable(group_id) != ErrorCode.NONE:
            return False
        made += kind.tombstones(group_id)
        return True

    # ------------------------------------------------------------------ deleted topics

    def topics_deleted(self, topics: dict[str, bytes], moment: Moment) -> Result[None]:
        """Topics (name -> id) are gone: their offsets go too. An offset committed for a topic of
        the same name that was made since has another id and stays."""
        self._deletions.append((topics, deque(self._storage.offsets.by_group)))
        for producer_offsets in self._storage.pending.values():
            self._deletions.append((topics, deque(producer_offsets.by_group)))
        self._deadlines.schedule(DELETION_TIMER, moment.now_ms)
        return Result()

    def delete(self, moment: Moment) -> Result[None]:
        """One slice of it."""
        made: list[CoordinatorRecord] = []
        walked: list[tuple[dict[str, bytes], deque[str]]] = []
        budget = SLICE_GROUPS
        while self._deletions and budget > 0:
            topics, group_ids = self._deletions[0]
            walked.append((topics, deque()))
            while group_ids and budget > 0:
                budget -= 1
                group_id = group_ids.popleft()
                found = self._tombstones(group_id, topics)
                if found:
                    made += found
                    walked[-1][1].append(group_id)
            if not group_ids:
                self._deletions.popleft()
        if self._deletions:
            self._deadlines.schedule(DELETION_TIMER, moment.now_ms)

        def refused(error: KafkaError) -> None:
            self._deletions.extend(walked)
            self._deadlines.schedule(DELETION_TIMER, moment.now_ms + RETRY_MS)

        return Result(made, None, refused=refused, atomic=False)

    def _tombstones(self, group_id: str, topics: dict[str, bytes]) -> list[CoordinatorRecord]:
        def is_gone(name: str, topic_id: bytes) -> bool:
            return topic_id in (NO_ID, topics[name])

        return offset_tombstones(self._storage, group_id, is_gone, topics)
