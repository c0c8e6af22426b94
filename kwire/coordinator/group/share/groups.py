"""The share groups of one shard: what operations share.

Soft state is when a group's topics are to be compared with the metadata again, since when
partitions wait for their state, and the assignment that is being computed; all are made anew after
a reload. Timers are keyed by kind, group and member.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.group.assignment_jobs import AssignmentJobs
from kwire.coordinator.group.group_configs import GroupConfig
from kwire.coordinator.group.kinds import GroupDeadlines
from kwire.coordinator.group.share import records
from kwire.coordinator.group.share.settings import ShareGroupSettings
from kwire.coordinator.group.share.state import ShareGroup
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import Topics, metadata_hash
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import ErrorCode, KafkaError

SESSION_TIMER, ASSIGN_TIMER = "share-session", "share-assign"

METADATA_REFRESH_MS = 2**31 - 1


class ShareGroups:
    """The share groups of one shard."""

    def __init__(
        self,
        storage: GroupStorage,
        settings: ShareGroupSettings,
        deadlines: GroupDeadlines,
        topics: Topics,
        group_config: GroupConfig,
    ) -> None:
        self.stored = storage.share.groups
        self._storage = storage
        self.counts = storage.counts
        self.settings = settings
        self.deadlines = deadlines
        self.topics = topics
        self.group_config = group_config
        self.refresh_at_ms: dict[str, int] = {}
        # Group -> topic id -> when its partitions were last asked to be initialized.
        self.initializing_since_ms: dict[str, dict[bytes, int]] = {}
        self.assigning = AssignmentJobs(
            deadlines, ASSIGN_TIMER, records.target, records.target_epoch
        )

    # --- finding ---

    def find(self, group_id: str, named: str = "Group") -> ShareGroup:
        """An existing group; raises GROUP_ID_NOT_FOUND (`named` as in its message)."""
        group = self.stored.get(group_id)
        if group is None:
            message = f"{named} {group_id} not found."
            if self._storage.kind(group_id) is not None:
                message = f"Group {group_id} is not a share group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group

    def find_or_new(self, group_id: str) -> ShareGroup:
        """The group, or a new one; raises GROUP_ID_NOT_FOUND when the name belongs to a group of
        another kind."""
        if self._storage.kind(group_id) is None:
            return ShareGroup()
        return self.find(group_id)

    # --- epochs ---

    def hash_of(self, topic_names: Iterable[str]) -> int:
        return metadata_hash(topic_names, self.topics)

    def refresh_due(self, group_id: str, moment: Moment) -> bool:
        """Whether the group's topics have to be compared with the metadata again."""
        return moment.now_ms >= self.refresh_at_ms.get(group_id, 0)

    def refreshed(self, group_id: str, moment: Moment) -> None:
        self.refresh_at_ms[group_id] = moment.now_ms + METADATA_REFRESH_MS

    def topics_changed(self) -> None:
        """The metadata has other topics: every group compares its own at its next heartbeat."""
        self.refresh_at_ms.clear()

    # --- members going ---

    def fence(self, group_id: str, group: ShareGroup, member_id: str) -> Result[None]:
        """Remove a member: the group gets a new epoch, an empty one is settled at once."""
        made = records.member_tombstones(group_id, member_id)
        is_last = group.members.keys() == {member_id}
        epoch = group.epoch + 1
        topic_names = group.topic_names(member_id, ())
        made.append(records.group_epoch(group_id, epoch, self.hash_of(topic_names)))
        if is_last:
            made.append(records.target_epoch(group_id, epoch, 0))

        def appended() -> None:
            self.deadlines.cancel((SESSION_TIMER, group_id, member_id))
            if is_last:
                self.forget(group_id)

        return Result(made, None, appended)

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that is empty or gone."""
        self.refresh_at_ms.pop(group_id, None)
        self.initializing_since_ms.pop(group_id, None)
        self.assigning.forget(group_id)

    # --- timers ---

    def load(self, moment: Moment) -> None:
        """After replay: every member has a full session from now."""
        for group_id, group in self.stored.items():
            for member_id in group.members:
                self.extend_session(group_id, member_id, moment)

    def extend_session(self, group_id: str, member_id: str, moment: Moment) -> None:
        timeout_ms = self.group_config(group_id, "share.session.timeout.ms")
        key = (SESSION_TIMER, group_id, member_id)
        self.deadlines.schedule(key, moment.now_ms + timeout_ms)

    def session_overdue(self, group_id: str, member_id: str) -> Result[None]:
        group = self.stored.get(group_id)
        if group is None or member_id not in group.members:
            return Result()
        return self.fence(group_id, group, member_id)

    def assign_slice(self, group_id: str, moment: Moment) -> Result[None]:
        """One slice of an assignment that is being computed."""
        group = self.stored.get(group_id)
        if group is None:
            return self.assigning.slice_of(group_id, None, {}, moment)
        return self.assigning.slice_of(group_id, group.epoch, group.targets, moment)


def tombstones(group_id: str) -> list[CoordinatorRecord]:
    """What is left of an empty group."""
    return records.group_tombstones(group_id)
