"""The consumer groups of one shard: what operations share.

Soft state is when a group's topics are to be compared with the metadata again and the assignment
that is being computed; both are made anew after a reload. Timers are keyed by kind, group and
member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.coordinator.group.assignment_jobs import AssignmentJobs
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.rebalance import ClassicGroups
from kwire.coordinator.group.classic.records import group_tombstone
from kwire.coordinator.group.consumer import migration, records
from kwire.coordinator.group.consumer.jobs import Matching
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.consumer.state import (
    ConsumerGroup,
    Current,
    Member,
    MemberState,
)
from kwire.coordinator.group.consumer.subscriptions import subscribed, used_patterns
from kwire.coordinator.group.group_configs import GroupConfig
from kwire.coordinator.group.kinds import GroupDeadlines
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import Topics, metadata_hash
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import ErrorCode, KafkaError

SESSION_TIMER, REBALANCE_TIMER = "consumer-session", "consumer-rebalance"
# A classic member has to join again, or to send its SyncGroup.
JOIN_TIMER, SYNC_TIMER = "consumer-join", "consumer-sync"
MEMBER_TIMERS = (SESSION_TIMER, REBALANCE_TIMER, JOIN_TIMER, SYNC_TIMER)
ASSIGN_TIMER, REGEX_TIMER = "consumer-assign", "consumer-regex"

METADATA_REFRESH_MS = 3 * 60_000


class ConsumerGroups:
    """The consumer groups of one shard; `classic` are those that they may become, or come from."""

    def __init__(
        self,
        storage: GroupStorage,
        settings: ConsumerGroupSettings,
        deadlines: GroupDeadlines,
        topics: Topics,
        group_config: GroupConfig,
        classic: ClassicGroups,
    ) -> None:
        self.stored = storage.consumer.groups
        self._storage = storage
        self.counts = storage.counts
        self.classic = classic
        self.settings = settings
        self.deadlines = deadlines
        self.topics = topics
        self.group_config = group_config
        self.refresh_at_ms: dict[str, int] = {}
        self.assigning = AssignmentJobs(
            deadlines, ASSIGN_TIMER, records.target, records.target_epoch
        )
        # What patterns match (see patterns.py), for one generation of the topics.
        self.generation = 0
        self.matched: dict[str, tuple[str, ...]] = {}
        self.matching: dict[str, Matching] = {}
        # Group -> which topics its patterns may match, by the rights of who was heard last.
        self.describers: dict[str, Callable[[str], bool]] = {}

    # --- finding ---

    def find(self, group_id: str, named: str = "Consumer group") -> ConsumerGroup:
        """An existing group; raises GROUP_ID_NOT_FOUND (`named` as in its message)."""
        group = self.stored.get(group_id)
        if group is None:
            message = f"{named} {group_id} not found."
            if self._storage.kind(group_id) is not None:
                message = f"Group {group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group

    def find_or_new(self, group_id: str) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
        """The group, or a new one with what has to be written to make room for it: a classic
        group of that name becomes a consumer group. Raises GROUP_ID_NOT_FOUND when the name
        belongs to a group of another kind, or to a classic one that has to stay what it is."""
        group = self.stored.get(group_id)
        if group is not None:
            return group, []
        kind = self._storage.kind(group_id)
        if kind is None:
            return ConsumerGroup(), []
        if kind == self._storage.classic.name:
            old = self.classic.view(group_id)
            if old is not None and old.members:
                migration.check_upgrade(old, self.settings)
                return migration.upgraded(old, self.topics)
            return ConsumerGroup(), [group_tombstone(group_id)]
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def upgraded(self, group_id: str, moment: Moment) -> None:
        """A classic group was replaced: whoever waits there is asked to join again."""
        old = self.classic.live.get(group_id)
        if old is not None:
            self.classic.interrupt(old)
            self.classic.forget(group_id)
        for member in self.stored[group_id].members.values():
            if member.classic is not None:
                self.extend_session(group_id, member, moment)

    def become_classic(
        self, group_id: str, old: ConsumerGroup, made: ClassicGroup, moment: Moment
    ) -> None:
        """A consumer group was replaced by the classic group `made`."""
        for member_id in old.members:
            self.cancel_timers(group_id, member_id)
        self.forget(group_id)
        self.classic.live[group_id] = made
        for classic_member in made.members.values():
            self.classic.extend_session(made, classic_member, moment)

    # --- epochs ---

    def hash_without(self, group: ConsumerGroup, gone: Sequence[Member]) -> int:
        """Of the topics that the group reads without these members."""
        return metadata_hash(subscribed(group, gone=gone), self.topics)

    def refresh_due(self, group_id: str, moment: Moment) -> bool:
        """Whether the group's topics have to be compared with the metadata again."""
        return moment.now_ms >= self.refresh_at_ms.get(group_id, 0)

    def refreshed(self, group_id: str, moment: Moment) -> None:
        self.refresh_at_ms[group_id] = moment.now_ms + METADATA_REFRESH_MS

    def topics_changed(self) -> None:
        """The metadata has other topics: every group compares its own at its next heartbeat."""
        self.refresh_at_ms.clear()
        self.generation += 1
        self.matched.clear()
        for group_id, group in self.stored.items():
            if group.regexes:
                self.deadlines.schedule((REGEX_TIMER, group_id), 0)

    def heard_pattern(
        self, group_id: str, describes: Callable[[str], bool] | None, moment: Moment
    ) -> None:
        """A member with a pattern was heard; `describes` is what its client may see."""
        if describes is None:
            return
        if group_id not in self.describers:
            # A refresh may have waited for somebody in whose name it can be done.
            self.deadlines.schedule((REGEX_TIMER, group_id), moment.now_ms)
        self.describers[group_id] = describes

    # --- members going ---

    def fence(
        self, group_id: str, group: ConsumerGroup, gone: list[str], moment: Moment
    ) -> Result[None]:
        """Remove members: the group gets a new epoch, an empty one is settled at once; one in
        which only members of the classic protocol are left becomes a classic group."""
        leaving = dict.fromkeys(gone)
        left = {k: member for k, member in group.members.items() if k not in leaving}
        if migration.may_downgrade(left, self.settings, self.classic.settings.max_size):
            return self._downgrade(group_id, group, left, moment)
        made: list[CoordinatorRecord] = []
        for member_id in gone:
            made += records.member_tombstones(group_id, member_id)
        still_used = used_patterns(group.members, gone)
        made += [
            records.regex_tombstone(group_id, pattern)
            for pattern in group.regexes
            if pattern not in still_used
        ]
        epoch = group.epoch + 1
        went = [group.members[member_id] for member_id in leaving if member_id in group.members]
        made.append(records.group_epoch(group_id, epoch, self.hash_without(group, went)))
        if not left:
            made.append(records.target_epoch(group_id, epoch, 0))

        def appended() -> None:
            for member_id in gone:
                self.cancel_timers(group_id, member_id)
            if not left:
                self.forget(group_id)

        return Result(made, None, appended)

    def _downgrade(
        self, group_id: str, group: ConsumerGroup, left: dict[str, Member], moment: Moment
    ) -> Result[None]:
        made, record = migration.downgraded(
            group_id, left, group.targets, group.epoch, self.topics, moment.wall_ms
        )
        written = [
            *records.whole_group_tombstones(group_id, group.members, group.regexes), record
        ]  # fmt: skip

        def appended() -> None:
            self.become_classic(group_id, group, made, moment)
            self.classic.prepare(made, moment)

        return Result(written, None, appended)

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that is empty or gone."""
        self.refresh_at_ms.pop(group_id, None)
        self.assigning.forget(group_id)
        self.matching.pop(group_id, None)
        self.describers.pop(group_id, None)
        self.deadlines.cancel((REGEX_TIMER, group_id))

    def assign_slice(self, group_id: str, moment: Moment) -> Result[None]:
        """One slice of an assignment that is being computed."""
        group = self.stored.get(group_id)
        if group is None:
            return self.assigning.slice_of(group_id, None, {}, moment)
        return self.assigning.slice_of(group_id, group.epoch, group.targets, moment)

    # --- timers ---

    def load(self, moment: Moment) -> None:
        """After replay: every member has a full session from now."""
        for group_id, group in self.stored.items():
            for member_id, member in group.members.items():
                self.extend_session(group_id, member, moment)
                if member.classic is None:
                    where = group.where(member_id)
                    self.watch_revocation(group_id, member, where, where, moment)

    def extend_session(self, group_id: str, member: Member, moment: Moment) -> None:
        """A full session from now: the group's, or what a classic member asked for."""
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        else:
            timeout_ms = self.group_config(group_id, "consumer.session.timeout.ms")
        key = (SESSION_TIMER, group_id, member.member_id)
        self.deadlines.schedule(key, moment.now_ms + timeout_ms)

    def watch_revocation(
        self, group_id: str, member: Member, before: Current, after: Current, moment: Moment
    ) -> None:
        """A member that has to give something up has its rebalance timeout for it, and a full one
        again with each step it takes: as in Apache Kafka 4.4 (maybeReconcile)."""
        key = (REBALANCE_TIMER, group_id, member.member_id)
        if after.state != MemberState.UNREVOKED_PARTITIONS:
            self.deadlines.cancel(key)
        elif after is not before or key not in self.deadlines:
            self.deadlines.schedule(key, moment.now_ms + member.rebalance_timeout_ms)

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        for name in MEMBER_TIMERS:
            self.deadlines.cancel((name, group_id, member_id))

    def member_overdue(self, group_id: str, member_id: str, moment: Moment) -> Result[None]:
        """A session, a revocation, a classic member's JoinGroup or SyncGroup took too long."""
        group = self.stored.get(group_id)
        if group is None or member_id not in group.members:
            return Result()
        return self.fence(group_id, group, [member_id], moment)

    def revocation_overdue(self, group_id: str, member_id: str, moment: Moment) -> Result[None]:
        group = self.stored.get(group_id)
        if group is None or group.where(member_id).state != MemberState.UNREVOKED_PARTITIONS:
            return Result()
        return self.member_overdue(group_id, member_id, moment)
