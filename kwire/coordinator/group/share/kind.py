"""Share groups as a kind of group (see `GroupKind` in kinds.py)."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.coordinator.group.kinds import ListedGroup, TimerAction
from kwire.coordinator.group.not_classic import NotClassic
from kwire.coordinator.group.retries import again_if_refused
from kwire.coordinator.group.share import records
from kwire.coordinator.group.share.groups import (
    ASSIGN_TIMER,
    SESSION_TIMER,
    ShareGroups,
)
from kwire.coordinator.group.share.state import NAME
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import AnyReply, CoordinatorRecord, Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


class ShareKind(NotClassic):
    """The share groups of a shard; ShareGroupHeartbeat makes them. They commit no offsets here, and
    never go by themselves."""

    name = NAME
    has_offsets = False
    expires = False

    def __init__(self, groups: ShareGroups) -> None:
        self.groups = groups
        self.group_ids = groups.stored
        timers: dict[str, TimerAction] = {
            SESSION_TIMER: lambda key, moment: groups.session_overdue(key[1], key[2]),
            ASSIGN_TIMER: lambda key, moment: groups.assign_slice(key[1], moment),
        }
        self.timers = again_if_refused(groups.deadlines, timers)

    def state_topics(self, group_id: str) -> list[tuple[str, bytes, list[int]]]:
        """(topic, id, partitions) whose state is initialized; none of a group that is unknown or
        no share group."""
        group = self.groups.stored.get(group_id)
        if group is None:
            return []
        return [
            (topic.name, topic_id, list(topic.partitions))
            for topic_id, topic in group.initialized().items()
        ]

    # --- soft state

    def load(self, moment: Moment) -> None:
        self.groups.load(moment)

    def forget(self, group_id: str) -> None:
        self.groups.forget(group_id)

    def topics_changed(self) -> None:
        self.groups.topics_changed()

    def waiting(self) -> list[AnyReply]:
        """No request of theirs is parked."""
        return []

    # --- administration

    def listed(self) -> Iterator[ListedGroup]:
        for group_id, group in self.groups.stored.items():
            yield ListedGroup(group_id, NAME, group.state_name())

    def deletable(self, group_id: str) -> ErrorCode:
        has_members = bool(self.groups.stored[group_id].members)
        return ErrorCode.NON_EMPTY_GROUP if has_members else ErrorCode.NONE

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        return records.group_tombstones(group_id)

    # --- offsets

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        raise _has_none(request.group_id)

    def check_transactional_commit(
        self, request: m.TxnOffsetCommitRequest, api_version: int
    ) -> None:
        raise _has_none(request.group_id)

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        """There is nothing to be had."""

    def check_delete_offsets(self, group_id: str) -> None:
        raise _has_none(group_id)

    def subscribed_group(self, group_id: str) -> ShareSubscriptions:
        return ShareSubscriptions(frozenset(self.groups.stored[group_id].subscriptions))


class ShareSubscriptions:
    """A `SubscribedGroup` (kinds.py)."""

    def __init__(self, topics: frozenset[str]) -> None:
        self._topics = topics

    def is_subscribed(self, topic: str) -> bool:
        return topic in self._topics

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        """A share group has no offsets here."""
        return False


def _has_none(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
