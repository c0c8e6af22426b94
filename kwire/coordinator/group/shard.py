"""One partition of `__consumer_offsets`: storage, the operations on it, its timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.clock import Random
from kwire.coordinator.deadlines import Deadlines
from kwire.coordinator.group.admin import GroupAdmin
from kwire.coordinator.group.classic.join import Joining
from kwire.coordinator.group.classic.membership import Membership
from kwire.coordinator.group.classic.rebalance import ClassicGroups, Records, TimerKey
from kwire.coordinator.group.consumer import assigning, patterns
from kwire.coordinator.group.consumer.groups import (
    ASSIGN_TIMER,
    JOIN_TIMER,
    REBALANCE_TIMER,
    REGEX_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    ConsumerGroups,
    ConsumerGroupSettings,
)
from kwire.coordinator.group.consumer.subscriptions import Topics
from kwire.coordinator.group.expiry import DELETION_TIMER, EXPIRY_TIMER, Expiry
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.shard_interface import Moment, Result
from kwire.pending import Pending


class GroupShard:
    """A Shard (shard_interface.py) of the group coordinator. The operations are on its parts:
    `joining`, `membership`, `offsets`, `admin`, `expiry`."""

    def __init__(
        self,
        settings: GroupSettings,
        random: Random,
        consumer_settings: ConsumerGroupSettings,
        topics: Topics,
        group_value: Callable[[str, str], Any],
    ) -> None:
        self.storage = GroupStorage()
        self.deadlines: Deadlines[TimerKey] = Deadlines()
        self.groups = ClassicGroups(self.storage, settings, self.deadlines)
        self.consumer_groups = ConsumerGroups(
            self.storage, consumer_settings, self.deadlines, topics, group_value, self.groups
        )
        self.joining = Joining(self.groups, self.consumer_groups, random)
        self.membership = Membership(self.groups, self.consumer_groups)
        self.offsets = OffsetOperations(self.groups)
        self.admin = GroupAdmin(self.groups, self.offsets)
        self.expiry = Expiry(self.groups, self.offsets)
        consumers = self.consumer_groups
        # First element of a timer's key -> what acts on it; classic groups' for the others.
        self._timers: dict[str, Callable[[TimerKey, Moment], Result]] = {
            EXPIRY_TIMER[0]: lambda key, moment: self.expiry.check(moment),
            DELETION_TIMER[0]: lambda key, moment: self.expiry.delete(moment),
            SESSION_TIMER: lambda key, moment: consumers.member_overdue(key[1], key[2], moment),
            JOIN_TIMER: lambda key, moment: consumers.member_overdue(key[1], key[2], moment),
            SYNC_TIMER: lambda key, moment: consumers.member_overdue(key[1], key[2], moment),
            REBALANCE_TIMER: lambda key, moment: consumers.revocation_overdue(
                key[1], key[2], moment
            ),
            ASSIGN_TIMER: lambda key, moment: assigning.slice_of(consumers, key[1], moment),
            REGEX_TIMER: lambda key, moment: patterns.resolve(consumers, key[1], moment),
        }

    def replay(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        self.storage.replay(key, value, offset, producer_id, producer_epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        self.storage.replay_marker(producer_id, producer_epoch, commit)

    def loaded(self, moment: Moment) -> Result:
        self.groups.load(moment)
        self.consumer_groups.load(moment)
        self.expiry.start(moment)
        return Result()

    def timers(self) -> int | None:
        return self.deadlines.next_deadline()

    def expire(self, moment: Moment) -> Result | None:
        key = self.deadlines.pop_due(moment.now_ms)
        if key is None:
            return None
        act = self._timers.get(key[0])
        if act is not None:
            return act(key, moment)
        records: Records = self.groups.expire(key, moment)
        group = self.groups.live.get(key[1])
        appended = None if group is None else lambda: self.groups.rest(group)
        # A record of an Empty group that the log refuses is not missed: until the next one, a
        # reload shows the members of before, whose sessions then end.
        return Result(records, None, appended, refused=lambda _: True)

    def take_replies(self) -> list[tuple[Pending[Any], Any]]:
        replies = self.groups.replies
        if replies:
            self.groups.replies = []
        return replies

    def discard(self) -> list[Pending[Any]]:
        waiting = self.groups.waiting()
        self.groups.live.clear()
        self.groups.replies = []
        return waiting
