"""SyncGroup, Heartbeat and LeaveGroup of classic groups."""

from __future__ import annotations

from typing import Any

from kwire.coordinator.errors import refusal
from kwire.coordinator.group.classic.group import ClassicGroup, SyncReply
from kwire.coordinator.group.classic.rebalance import STORE_TIMER, SYNC_TIMER, ClassicGroups
from kwire.coordinator.group.classic.states import (
    HEARTBEAT_ACCEPTED,
    HEARTBEAT_BY_STATE,
    ClassicState,
)
from kwire.coordinator.group.classic.storing import AT_ONCE_MEMBERS_MAX, Storing
from kwire.coordinator.group.kinds import TimerKey
from kwire.coordinator.group.refusals import sync_error
from kwire.coordinator.shard_interface import Moment, Result
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


class Membership:
    """What members of a generation send."""

    def __init__(self, groups: ClassicGroups) -> None:
        self._groups = groups

    def _find(self, group_id: str) -> ClassicGroup:
        """The group; raises UNKNOWN_MEMBER_ID when there is none of that name."""
        group = self._groups.find(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    # ------------------------------------------------------------------ SyncGroup

    def sync(self, request: m.SyncGroupRequest, moment: Moment) -> Result[m.SyncGroupResponse]:
        """One SyncGroup (v0-5): the leader's carries the assignments, which are stored and then
        handed to all that wait; in Stable anybody gets theirs again. Raises what refuses it."""
        group = self._find(request.group_id)
        self._check_sync(group, request)
        member = group.members[request.member_id]
        if group.state is ClassicState.PREPARING_REBALANCE:
            return Result((), sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        self._synced(group, request.member_id)
        if group.state is ClassicState.STABLE:
            response = m.SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol,
                assignment=member.assignment,
            )
            return Result((), response)
        reply: SyncReply = Pending()
        member.awaiting_sync = reply
        if not group.is_leader(request.member_id):
            return Result((), reply)
        return self._leader_synced(group, request, reply, moment)

    def _check_sync(self, group: ClassicGroup, request: m.SyncGroupRequest) -> None:
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type) or _differs(
            request.protocol_name, group.protocol
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_syncs.pop(member_id, None)
        if not group.pending_syncs:
            self._groups.deadlines.cancel((SYNC_TIMER, group.group_id))

    def _leader_synced(
        self,
        group: ClassicGroup,
        request: m.SyncGroupRequest,
        reply: SyncReply,
        moment: Moment,
    ) -> Result[m.SyncGroupResponse]:
        groups, group_id = self._groups, group.group_id
        present = groups.storing.get(group_id)
        if present is not None and present.is_current(group):
            return Result((), reply)
        given = {x.member_id: bytes(x.assignment) for x in request.assignments}
        storing = Storing(group, given)
        if len(group.members) > AT_ONCE_MEMBERS_MAX:
            groups.storing[group_id] = storing
            groups.deadlines.schedule((STORE_TIMER, group_id), moment.now_ms)
            return Result((), reply)
        storing.step()
        return self._stored(group, storing, moment, reply)

    def store_slice(self, key: TimerKey, moment: Moment) -> Result[None]:
        """The next slice of an assignment; behind the last one it is appended."""
        groups, group_id = self._groups, key[1]
        storing, group = groups.storing.get(group_id), groups.live.get(group_id)
        if storing is None or group is None or not storing.is_current(group):
            groups.storing.pop(group_id, None)
            return Result()
        if storing.has_more:
            storing.step()
            # What follows the last slice has a turn for itself.
            groups.deadlines.schedule(key, moment.now_ms + (not storing.has_more))
            return Result()
        del groups.storing[group_id]
        return self._stored(group, storing, moment)

    def _stored(
        self,
        group: ClassicGroup,
        storing: Storing,
        moment: Moment,
        reply: SyncReply | None = None,
    ) -> Result[Any]:
        """`reply` is that of the request that this is the result of, if it is one."""
        record, encoded = storing.record()
        assignments = storing.assignments
        self._groups.counts.completed_rebalances += 1

        def appended() -> None:
            for member in group.members.values():
                member.assignment = assignments[member.member_id]
            group.move_to(ClassicState.STABLE, moment.wall_ms)
            self._groups.propagate(group, ErrorCode.NONE, moment)

        def refused(error: KafkaError) -> SyncReply | None:
            for member in group.members.values():
                member.assignment = b""
            self._groups.propagate(group, refusal(error), moment)
            self._groups.prepare(group, moment)
            return reply

        return Result([record], reply, appended, refused, encoded=encoded)

    # ------------------------------------------------------------------ Heartbeat

    def heartbeat(self, request: m.HeartbeatRequest, moment: Moment) -> Result[m.HeartbeatResponse]:
        """One Heartbeat (v0-4): extends the session; REBALANCE_IN_PROGRESS asks to join again."""
        group = self._find(request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        code = HEARTBEAT_BY_STATE[group.state]
        if code not in HEARTBEAT_ACCEPTED:
            raise KafkaError(code)
        self._groups.extend_session(group, group.members[request.member_id], moment)
        return Result((), m.HeartbeatResponse(error_code=code))

    # ------------------------------------------------------------------ LeaveGroup

    def leave(self, request: m.LeaveGroupRequest, moment: Moment) -> Result[m.LeaveGroupResponse]:
        """One LeaveGroup in the form of v3-5 (a list of members, also by instance id alone);
        raises UNKNOWN_MEMBER_ID for a group that does not exist."""
        group = self._find(request.group_id)
        results = []
        left = False
        for identity in request.members:
            code = self._leave_one(group, identity)
            left = left or code == ErrorCode.NONE
            results.append(
                m.LeaveGroupResponse.MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        made = []
        if left and group.state is ClassicState.PREPARING_REBALANCE:
            made = self._groups.complete_if_joined(group, moment)
        elif left:
            made = self._groups.after_removal(group, moment)
        return Result(
            made,
            m.LeaveGroupResponse(members=results),
            appended=lambda: self._groups.drop_idle(group),
            refused=lambda error: m.LeaveGroupResponse(members=results),
        )

    def _leave_one(
        self, group: ClassicGroup, identity: m.LeaveGroupRequest.MemberIdentity
    ) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:
            # Removal by an administrator, who knows the instance id only.
            member_id = group.static_members.get(instance_id, "") if instance_id else ""
            if not member_id:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id in group.pending_joins:
            group.remove(member_id)
            self._groups.cancel_session(group, member_id)
            return ErrorCode.NONE
        else:
            try:
                group.check_member(member_id, instance_id)
            except KafkaError as error:
                return ErrorCode(error.code)
        self._groups.remove_member(group, group.members[member_id])
        return ErrorCode.NONE


def _differs(asked: str | None, has: str | None) -> bool:
    return asked is not None and has is not None and asked != has
