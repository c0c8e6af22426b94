"""The consumer groups of one shard: what operations share.

Soft state is when a group's topics are to be looked at again and the assignment that is being
computed; both are made anew after a reload. Timers are keyed by kind, group and member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kwire.coordinator.deadlines import Deadlines
from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.state import ConsumerGroup, Current, Member, MemberState
from kwire.coordinator.group.consumer.subscriptions import (
    Topics,
    metadata_hash,
    subscribed,
    used_patterns,
)
from kwire.coordinator.group.storage import CLASSIC, GroupStorage
from kwire.coordinator.seam import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import ErrorCode, KafkaError

TimerKey = tuple[str, ...]
SESSION_TIMER, REBALANCE_TIMER = "consumer-session", "consumer-rebalance"
ASSIGN_TIMER, REGEX_TIMER = "consumer-assign", "consumer-regex"

METADATA_REFRESH_MS = 3 * 60_000


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Broker configs under group.consumer; times in milliseconds. Defaults are Kafka's."""

    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: str = "bidirectional"


class ConsumerGroups:
    """`group_value(group_id, name)` resolves a group config such as consumer.session.timeout.ms."""

    def __init__(
        self,
        storage: GroupStorage,
        settings: ConsumerGroupSettings,
        deadlines: Deadlines[TimerKey],
        topics: Topics,
        group_value: Callable[[str, str], Any],
    ) -> None:
        self.storage = storage
        self.settings = settings
        self.deadlines = deadlines
        self.topics = topics
        self.group_value = group_value
        self.refresh_at_ms: dict[str, int] = {}
        self.assigning: dict[str, Any] = {}

    # --- finding ---

    def find(self, group_id: str) -> ConsumerGroup:
        """An existing group; raises GROUP_ID_NOT_FOUND."""
        group = self.storage.consumer.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return group

    def find_or_new(self, group_id: str) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
        """The group, or a new one with what has to be written to make room for it: an empty
        classic group of that name becomes a consumer group. Raises GROUP_ID_NOT_FOUND when the
        name belongs to a group of another kind."""
        group = self.storage.consumer.get(group_id)
        if group is not None:
            return group, []
        kind = self.storage.kind(group_id)
        if kind is None:
            return ConsumerGroup(), []
        if kind == CLASSIC and not self.storage.classic[group_id].members:
            from kwire.coordinator.group.records import group_tombstone

            return ConsumerGroup(), [group_tombstone(group_id)]
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    # --- epochs ---

    def hash_of(self, group: ConsumerGroup, members: Iterable[Member]) -> int:
        return metadata_hash(subscribed(group, members), self.topics)

    def refresh_due(self, group_id: str, moment: Moment) -> bool:
        """Whether the group's topics have to be compared with the metadata again."""
        return moment.now_ms >= self.refresh_at_ms.get(group_id, 0)

    def refreshed(self, group_id: str, moment: Moment) -> None:
        self.refresh_at_ms[group_id] = moment.now_ms + METADATA_REFRESH_MS

    def topics_changed(self) -> None:
        """The metadata has other topics than before: every group looks at its next heartbeat."""
        self.refresh_at_ms.clear()
        for group_id, group in self.storage.consumer.items():
            if group.regexes:
                self.deadlines.schedule((REGEX_TIMER, group_id), 0)

    # --- members going ---

    def fence(self, group_id: str, group: ConsumerGroup, gone: list[str]) -> Result:
        """Remove members: the group gets a new epoch, an empty one is settled at once."""
        made: list[CoordinatorRecord] = []
        for member_id in gone:
            made += records.member_tombstones(group_id, member_id)
        left = [member for member_id, member in group.members.items() if member_id not in gone]
        still_used = used_patterns(group.members, gone)
        made += [
            records.regex_tombstone(group_id, pattern)
            for pattern in group.regexes
            if pattern not in still_used
        ]
        epoch = group.epoch + 1
        made.append(records.group_epoch(group_id, epoch, self.hash_of(group, left)))
        if not left:
            made.append(records.target_epoch(group_id, epoch, 0))

        def appended() -> None:
            for member_id in gone:
                self.cancel_timers(group_id, member_id)
            if not left:
                self.forget(group_id)

        return Result(made, None, appended)

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that is empty or gone."""
        self.refresh_at_ms.pop(group_id, None)
        self.assigning.pop(group_id, None)
        self.deadlines.cancel((ASSIGN_TIMER, group_id))
        self.deadlines.cancel((REGEX_TIMER, group_id))

    # --- timers ---

    def load(self, moment: Moment) -> None:
        """After replay: every member has a full session from now."""
        for group_id, group in self.storage.consumer.items():
            for member_id, member in group.members.items():
                self.extend_session(group_id, member_id, moment)
                self.watch_revocation(group_id, member, group.where(member_id), moment)

    def extend_session(self, group_id: str, member_id: str, moment: Moment) -> None:
        timeout_ms = int(self.group_value(group_id, "consumer.session.timeout.ms"))
        self.deadlines.schedule((SESSION_TIMER, group_id, member_id), moment.now_ms + timeout_ms)

    def watch_revocation(
        self, group_id: str, member: Member, where: Current, moment: Moment
    ) -> None:
        """A member that has to give something up has its rebalance timeout for it."""
        key = (REBALANCE_TIMER, group_id, member.member_id)
        if where.state != MemberState.UNREVOKED_PARTITIONS:
            self.deadlines.cancel(key)
        elif key not in self.deadlines:
            self.deadlines.schedule(key, moment.now_ms + member.rebalance_timeout_ms)

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        self.deadlines.cancel((SESSION_TIMER, group_id, member_id))
        self.deadlines.cancel((REBALANCE_TIMER, group_id, member_id))

    def member_overdue(self, group_id: str, member_id: str) -> Result:
        """A session or a revocation took too long."""
        group = self.storage.consumer.get(group_id)
        if group is None or member_id not in group.members:
            return Result()
        return self.fence(group_id, group, [member_id])

    def revocation_overdue(self, group_id: str, member_id: str) -> Result:
        group = self.storage.consumer.get(group_id)
        if group is None or group.where(member_id).state != MemberState.UNREVOKED_PARTITIONS:
            return Result()
        return self.member_overdue(group_id, member_id)
