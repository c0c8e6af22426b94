"""Groups that are not coordinated here, as a kind of group (see `GroupKind` in kinds.py).

A group's state is what its records say, as nobody can act as its member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from kwire.coordinator.group.carried.stored import StoredCarriedGroups
from kwire.coordinator.group.kinds import ListedGroup, TimerAction
from kwire.coordinator.group.not_classic import NotClassic
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import AnyReply, CoordinatorRecord, Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

V = TypeVar("V")

STABLE_MEMBER = 0


class CarriedKind(NotClassic):
    """The streams groups of a shard."""

    has_offsets = True
    expires = False

    def __init__(self, stored: StoredCarriedGroups) -> None:
        self.name = stored.name
        self.group_ids = stored.groups
        self.timers: dict[str, TimerAction] = {}

    def values(self, group_id: str, value_class: type[V]) -> list[V]:
        """The values of a group's records of one type."""
        records = self.group_ids.get(group_id, {}).values()
        return [value for _, value in records if isinstance(value, value_class)]

    def has_members(self, group_id: str) -> bool:
        """Whether the group has members on record."""
        return bool(self.values(group_id, m.StreamsGroupMemberMetadataValue))

    def state(self, group_id: str) -> str:
        """The state of the group by Kafka's name."""
        if not self.has_members(group_id):
            return "Empty"
        groups = self.values(group_id, m.StreamsGroupMetadataValue)
        targets = self.values(group_id, m.StreamsGroupTargetAssignmentMetadataValue)
        epoch = groups[0].epoch if groups else 0
        target_epoch = targets[0].assignment_epoch if targets else -1
        if epoch > target_epoch:
            return "Assigning"
        members = self.values(group_id, m.StreamsGroupCurrentMemberAssignmentValue)
        settled = all(x.state == STABLE_MEMBER and x.member_epoch == target_epoch for x in members)
        return "Stable" if settled else "Reconciling"

    # --- soft state: there is none

    def load(self, moment: Moment) -> None:
        """Nothing beside the records."""

    def forget(self, group_id: str) -> None:
        """Nothing beside the records."""

    def topics_changed(self) -> None:
        """Nobody assigns."""

    def waiting(self) -> list[AnyReply]:
        return []

    # --- administration

    def listed(self) -> Iterator[ListedGroup]:
        for group_id in self.group_ids:
            yield ListedGroup(group_id, self.name, self.state(group_id))

    def deletable(self, group_id: str) -> ErrorCode:
        if self.has_members(group_id):
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.GROUP_ID_NOT_FOUND

    def tombstones(self, group_id: str) -> Sequence[CoordinatorRecord]:
        raise AssertionError(f"{self.name} group {group_id} is not deleted here")

    # --- offsets

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        self._check_commit(request.group_id, request.generation_id_or_member_epoch)

    def check_transactional_commit(
        self, request: m.TxnOffsetCommitRequest, api_version: int
    ) -> None:
        self._check_commit(request.group_id, request.generation_id_or_member_epoch)

    def _check_commit(self, group_id: str, epoch: int) -> None:
        if epoch >= 0 or self.has_members(group_id):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        if request.member_id or request.member_epoch >= 0:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_delete_offsets(self, group_id: str) -> None:
        """Nobody here knows which topics the group reads."""

    def subscribed_group(self, group_id: str) -> CarriedSubscriptions:
        return CarriedSubscriptions()


class CarriedSubscriptions:
    """A `SubscribedGroup` (kinds.py): nobody here knows what the group reads and still needs."""

    def is_subscribed(self, topic: str) -> bool:
        return False

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        return False
