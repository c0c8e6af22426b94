"""Classic groups as a kind of group (see `GroupKind` in kinds.py)."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.clock import Random
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.classic import offsets, records
from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember
from kwire.coordinator.group.classic.join import Joining
from kwire.coordinator.group.classic.membership import Membership
from kwire.coordinator.group.classic.rebalance import (
    JOIN_TIMER,
    MEMBER_TIMER,
    STORE_TIMER,
    SYNC_TIMER,
    ClassicGroups,
)
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.classic.stored import NAME
from kwire.coordinator.group.kinds import ListedGroup, TimerKey
from kwire.coordinator.shard_interface import AnyReply, CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

# States in which a commit counts as a sign of life.
_COMMITTING = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)


class ClassicKind:
    """The classic groups of a shard; JoinGroup makes them."""

    name = NAME
    has_offsets = True
    expires = True

    def __init__(self, groups: ClassicGroups, random: Random) -> None:
        self.groups = groups
        self.group_ids = groups.stored
        self.joining = Joining(groups, random)
        self._membership = Membership(groups)
        self.timers = {
            **dict.fromkeys((MEMBER_TIMER, JOIN_TIMER, SYNC_TIMER), self._expire),
            STORE_TIMER: self._membership.store_slice,
        }

    # --- soft state

    def load(self, moment: Moment) -> None:
        self.groups.load(moment)

    def forget(self, group_id: str) -> None:
        self.groups.forget(group_id)

    def topics_changed(self) -> None:
        """Members of classic groups follow the metadata themselves."""

    def waiting(self) -> list[AnyReply]:
        waiting = self.groups.waiting()
        self.groups.live.clear()
        return waiting

    def _expire(self, key: TimerKey, moment: Moment) -> Result[None]:
        """A record of an Empty group that the log refuses is not missed: until the next one, a
        reload shows the members of before, whose sessions then end."""
        made = self.groups.expire(key, moment)
        group = self.groups.live.get(key[1])
        return Result(made, None, None if group is None else lambda: self.groups.drop_idle(group))

    # --- the requests of the classic protocol

    def join(
        self, request: m.JoinGroupRequest, caller: Caller, moment: Moment
    ) -> Result[m.JoinGroupResponse]:
        return self.joining.join(request, caller, moment)

    def sync(self, request: m.SyncGroupRequest, moment: Moment) -> Result[m.SyncGroupResponse]:
        return self._membership.sync(request, moment)

    def heartbeat(self, request: m.HeartbeatRequest, moment: Moment) -> Result[m.HeartbeatResponse]:
        return self._membership.heartbeat(request, moment)

    def leave(self, request: m.LeaveGroupRequest, moment: Moment) -> Result[m.LeaveGroupResponse]:
        return self._membership.leave(request, moment)

    # --- administration

    def listed(self) -> Iterator[ListedGroup]:
        for group_id, stored in self.groups.stored.items():
            live = self.groups.live.get(group_id)
            state = ClassicState.EMPTY if live is None else live.state
            protocol_type = stored.protocol_type if live is None else live.protocol_type
            yield ListedGroup(group_id, protocol_type or "", state.value)

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        group = self._view(group_id)
        stable = group.state is ClassicState.STABLE
        return m.DescribeGroupsResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if stable else "",
            members=[_described(group, x, stable) for x in group.members.values()],
        )

    def deletable(self, group_id: str) -> ErrorCode:
        is_empty = self._view(group_id).state is ClassicState.EMPTY
        return ErrorCode.NONE if is_empty else ErrorCode.NON_EMPTY_GROUP

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        return [records.group_tombstone(group_id)]

    # --- offsets

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        group = self.groups.find(request.group_id)
        assert group is not None
        offsets.check_commit(group, request, transactional=False)
        if group.state in _COMMITTING:
            member = group.members.get(request.member_id)
            if member is not None:
                self.groups.extend_session(group, member, moment)

    def check_transactional_commit(
        self, request: m.TxnOffsetCommitRequest, api_version: int
    ) -> None:
        group = self.groups.find(request.group_id)
        assert group is not None
        offsets.check_commit(group, request, transactional=True)

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        """Anybody may ask."""

    def check_delete_offsets(self, group_id: str) -> None:
        group = self._view(group_id)
        if group.state is not ClassicState.EMPTY and not group.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def subscribed_group(self, group_id: str) -> offsets.ClassicSubscriptions:
        return offsets.ClassicSubscriptions(
            self._view(group_id), self.groups.settings.offsets_retention_ms
        )

    def _view(self, group_id: str) -> ClassicGroup:
        group = self.groups.view(group_id)
        assert group is not None
        return group


def _described(
    group: ClassicGroup, member: ClassicMember, stable: bool
) -> m.DescribeGroupsResponse.DescribedGroupMember:
    return m.DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol) if stable else b"",
        member_assignment=member.assignment,
    )
