"""Consumer groups as a kind of group (see `GroupKind` in kinds.py)."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.clock import Random
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.classic.join import Joining
from kwire.coordinator.group.consumer import classic_members, patterns, records
from kwire.coordinator.group.consumer import heartbeat as heartbeats
from kwire.coordinator.group.consumer.describe import Described, describe
from kwire.coordinator.group.consumer.groups import (
    ASSIGN_TIMER,
    JOIN_TIMER,
    REBALANCE_TIMER,
    REGEX_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    ConsumerGroups,
)
from kwire.coordinator.group.consumer.offsets import (
    ConsumerSubscriptions,
    check_consumer_commit,
    check_consumer_fetch,
    check_transactional_commit,
)
from kwire.coordinator.group.consumer.state import NAME
from kwire.coordinator.group.kinds import ListedGroup, TimerAction, TimerKey
from kwire.coordinator.group.refusals import not_described
from kwire.coordinator.group.retries import again_if_refused
from kwire.coordinator.shard_interface import AnyReply, CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class ConsumerKind:
    """The consumer groups of a shard; ConsumerGroupHeartbeat makes them. An empty one that is
    joined by JoinGroup becomes a classic one (`joining`)."""

    name = NAME
    has_offsets = True
    expires = True

    def __init__(
        self, groups: ConsumerGroups, joining: Joining, offsets_retention_ms: int, random: Random
    ) -> None:
        self.groups = groups
        self.group_ids = groups.stored
        self._joining = joining
        self._offsets_retention_ms = offsets_retention_ms
        self._random = random
        timers: dict[str, TimerAction] = {
            SESSION_TIMER: self._member_overdue,
            JOIN_TIMER: self._member_overdue,
            SYNC_TIMER: self._member_overdue,
            REBALANCE_TIMER: lambda key, moment: groups.revocation_overdue(key[1], key[2], moment),
            ASSIGN_TIMER: lambda key, moment: groups.assign_slice(key[1], moment),
            REGEX_TIMER: lambda key, moment: patterns.resolve(groups, key[1], moment),
        }
        self.timers = again_if_refused(groups.deadlines, timers)

    # --- what only this kind knows

    def consumer_heartbeat(
        self, request: m.ConsumerGroupHeartbeatRequest, caller: Caller, moment: Moment
    ) -> Result[m.ConsumerGroupHeartbeatResponse]:
        """One ConsumerGroupHeartbeat that `check_request` has passed; raises what refuses it."""
        return heartbeats.heartbeat(self.groups, request, caller, moment)

    def describe_consumer_group(self, group_id: str) -> Described:
        """For ConsumerGroupDescribe; raises GROUP_ID_NOT_FOUND."""
        return describe(self.groups, group_id)

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

    def _member_overdue(self, key: TimerKey, moment: Moment) -> Result[None]:
        return self.groups.member_overdue(key[1], key[2], moment)

    # --- the requests of the classic protocol

    def join(
        self, request: m.JoinGroupRequest, caller: Caller, moment: Moment
    ) -> Result[m.JoinGroupResponse]:
        group_id = request.group_id
        if self.groups.stored[group_id].members:
            return classic_members.join(self.groups, request, caller, self._random, moment)
        return self._joining.join(request, caller, moment, self.tombstones(group_id))

    def sync(self, request: m.SyncGroupRequest, moment: Moment) -> Result[m.SyncGroupResponse]:
        return classic_members.sync(self.groups, request, moment)

    def heartbeat(self, request: m.HeartbeatRequest, moment: Moment) -> Result[m.HeartbeatResponse]:
        return classic_members.heartbeat(self.groups, request, moment)

    def leave(self, request: m.LeaveGroupRequest, moment: Moment) -> Result[m.LeaveGroupResponse]:
        return classic_members.leave(self.groups, request, moment)

    # --- administration

    def listed(self) -> Iterator[ListedGroup]:
        for group_id, group in self.groups.stored.items():
            yield ListedGroup(group_id, NAME, group.state_name())

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        return not_described(group_id, f"Group {group_id} is not a classic group.")

    def deletable(self, group_id: str) -> ErrorCode:
        has_members = bool(self.groups.stored[group_id].members)
        return ErrorCode.NON_EMPTY_GROUP if has_members else ErrorCode.NONE

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        return records.group_tombstones(group_id)

    # --- offsets

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        check_consumer_commit(self.groups.stored[request.group_id], request, api_version)

    def check_transactional_commit(
        self, request: m.TxnOffsetCommitRequest, api_version: int
    ) -> None:
        check_transactional_commit(self.groups.stored[request.group_id], request, api_version)

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        check_consumer_fetch(self.groups.stored[request.group_id], request)

    def check_delete_offsets(self, group_id: str) -> None:
        """Those of topics that nobody is subscribed to may always be deleted."""

    def subscribed_group(self, group_id: str) -> ConsumerSubscriptions:
        return ConsumerSubscriptions(self.groups.stored[group_id], self._offsets_retention_ms)
