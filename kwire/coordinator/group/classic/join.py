"""JoinGroup: who becomes a member, under which id, and what that does to the group.

(KIP-345 static members, KIP-394 member ids that are handed out first, KIP-814 skip-assignment.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from kwire.clock import Random
from kwire.coordinator.errors import refusal
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.classic import records
from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember, JoinReply, Protocols
from kwire.coordinator.group.classic.rebalance import MEMBER_TIMER, ClassicGroups, Records
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.refusals import join_error
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

REBALANCE_TIMEOUT_VERSION = 1
MEMBER_ID_REQUIRED_VERSION = 4
SKIP_ASSIGNMENT_VERSION = 9
# What a string on the wire and in a record can hold.
TEXT_BYTES_MAX = 32767


Refused: TypeAlias = "Callable[[KafkaError], m.JoinGroupResponse | JoinReply]"


class _Outcome(NamedTuple):
    """Records, and the answer; None while the JoinGroup is parked."""

    records: Records
    response: m.JoinGroupResponse | None = None
    refused: Refused | None = None


class Joining:
    """JoinGroup over the classic groups of a shard."""

    def __init__(self, groups: ClassicGroups, random: Random) -> None:
        self._groups = groups
        self._random = random

    def join(
        self,
        request: m.JoinGroupRequest,
        caller: Caller,
        moment: Moment,
        replaced: Sequence[CoordinatorRecord] = (),
    ) -> Result[m.JoinGroupResponse]:
        """One JoinGroup (v0-9); group id and session timeout were checked before. `replaced` are
        the tombstones of an empty group of another kind that becomes a classic one."""
        groups, group_id, member_id = self._groups, request.group_id, request.member_id
        group = groups.find(group_id)
        created = group is None
        if group is None:
            if member_id:
                return Result((), join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            group = groups.create(group_id, moment)
        reply: JoinReply = Pending()
        if not self._accepts(group, member_id):
            outcome = _Outcome(
                self._shed(group, member_id, moment),
                join_error(ErrorCode.GROUP_MAX_SIZE_REACHED),
            )
        elif member_id:
            outcome = self._known_id(group, request, caller, moment, reply)
        else:
            outcome = self._new_id(group, request, caller, moment, reply)
        made, refused = outcome.records, outcome.refused
        if created and not made:
            made = [*replaced, self._new_group_record(group)]

            def refused(error: KafkaError) -> m.JoinGroupResponse:
                groups.forget(group_id)
                return join_error(refusal(error))

        response = reply if outcome.response is None else outcome.response
        return Result(made, response, refused=refused)

    def _new_group_record(self, group: ClassicGroup) -> CoordinatorRecord:
        """A group exists from its first JoinGroup on, also when that is refused."""
        stored = ClassicGroup(group.group_id).to_stored({})
        stored = stored._replace(state_timestamp_ms=group.state_timestamp_ms)
        return records.group_metadata(group.group_id, stored)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """group.max.size. While members are being collected those that wait are counted, so that
        a group that is too large sheds whoever comes last."""
        size_max = self._groups.settings.max_size
        if group.state in (ClassicState.EMPTY, ClassicState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            waits = member is not None and member.awaiting_join is not None
            return waits or group.joined_count < size_max
        return member is not None or len(group.members) < size_max

    def _shed(self, group: ClassicGroup, member_id: str, moment: Moment) -> Records:
        """A member that the group has no room for is out; it may have been the last one that the
        others waited for."""
        if member_id not in group.members:
            group.remove(member_id)
            return []
        self._groups.remove_member(group, group.members[member_id])
        return self._groups.after_removal(group, moment)

    # ------------------------------------------------------------------ without an id

    def _new_id(
        self,
        group: ClassicGroup,
        request: m.JoinGroupRequest,
        caller: Caller,
        moment: Moment,
        reply: JoinReply,
    ) -> _Outcome:
        names = [x.name for x in request.protocols]
        if not group.supports(request.protocol_type, names):
            return _Outcome([], join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        instance_id = request.group_instance_id
        prefix = caller.client_id if instance_id is None else instance_id
        new_id = f"{prefix}-{random_uuid(self._random)}"
        if len(new_id.encode(errors="replace")) > TEXT_BYTES_MAX:
            return _Outcome([], join_error(ErrorCode.UNKNOWN_SERVER_ERROR))
        if instance_id is None:
            if caller.api_version < MEMBER_ID_REQUIRED_VERSION:
                return self._add(group, request, caller, new_id, moment, reply)
            group.pending_joins[new_id] = None
            self._groups.deadlines.schedule(
                (MEMBER_TIMER, group.group_id, new_id),
                moment.now_ms + request.session_timeout_ms,
            )
            return _Outcome([], join_error(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        old_id = group.static_members.get(instance_id)
        if old_id is None:
            return self._add(group, request, caller, new_id, moment, reply)
        return self._replace(group, request, caller, (old_id, new_id), moment, reply)

    def _add(
        self,
        group: ClassicGroup,
        request: m.JoinGroupRequest,
        caller: Caller,
        member_id: str,
        moment: Moment,
        reply: JoinReply,
    ) -> _Outcome:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.client_host,
            rebalance_timeout_of(request, caller),
            request.session_timeout_ms,
            protocols_of(request),
        )
        member.is_new = True
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.previous_state is ClassicState.EMPTY
        ):
            group.new_member_added = True
        group.add(member, request.protocol_type, reply)
        # Its connection is muted while it waits, so a client that gave up is not noticed; and
        # it does not know its id yet, so it cannot heartbeat. Hence a bound of its own.
        self._groups.extend_session(
            group, member, moment, self._groups.settings.new_member_join_timeout_ms
        )
        return _Outcome(self._groups.rebalance_or_complete(group, moment))

    def _replace(
        self,
        group: ClassicGroup,
        request: m.JoinGroupRequest,
        caller: Caller,
        ids: tuple[str, str],
        moment: Moment,
        reply: JoinReply,
    ) -> _Outcome:
        """A static member comes back: it takes its place over under a new id, without a
        rebalance if the group is Stable and its protocol stays the same."""
        groups, (old_id, new_id) = self._groups, ids
        instance_id = request.group_instance_id
        old, old_leader = group.members[old_id], group.leader
        assert instance_id is not None
        assert old_leader is not None
        fenced = ErrorCode.FENCED_INSTANCE_ID
        groups.answer_join(group, old, join_error(fenced, old_id))
        groups.answer_sync(old, m.SyncGroupResponse(error_code=fenced))
        member = group.replace_static(instance_id, old_id, new_id)
        groups.cancel_session(group, old_id)
        if old_id in group.pending_syncs:
            del group.pending_syncs[old_id]
        group.update(
            member,
            protocols_of(request),
            rebalance_timeout_of(request, caller),
            request.session_timeout_ms,
            reply,
        )
        groups.extend_session(group, member, moment)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            # The leader may already be assigning to the old id.
            return _Outcome(groups.prepare(group, moment))
        if group.state is not ClassicState.STABLE:
            return _Outcome(groups.complete_if_joined(group, moment))
        if group.protocol != group.select_protocol():
            return _Outcome(groups.rebalance_or_complete(group, moment))
        group.await_join(member, None)
        assignments = {x.member_id: x.assignment for x in group.members.values()}
        record = records.group_metadata(group.group_id, group.to_stored(assignments))

        def refused(error: KafkaError) -> m.JoinGroupResponse:
            self._put_back(group, member, old, moment)
            group.leader = old_leader
            return self._kept_place(group, "", old_leader, refusal(error))

        return _Outcome([record], self._back_in_place(group, new_id, old_leader, caller), refused)

    def _back_in_place(
        self, group: ClassicGroup, new_id: str, old_leader: str, caller: Caller
    ) -> m.JoinGroupResponse:
        """The answer to a static member that keeps its assignment. A leader must not compute a
        new one: since v9 the answer says so, before it names another leader."""
        if caller.api_version < SKIP_ASSIGNMENT_VERSION:
            return self._kept_place(group, new_id, old_leader, ErrorCode.NONE)
        leads = group.is_leader(new_id)
        response = self._groups.joined(group, new_id, members=leads)
        response.skip_assignment = leads
        return response

    def _kept_place(
        self, group: ClassicGroup, member_id: str, leader: str, code: ErrorCode
    ) -> m.JoinGroupResponse:
        response = self._groups.joined(group, member_id, members=False)
        response.leader = leader
        response.error_code = code
        return response

    def _put_back(
        self, group: ClassicGroup, new: ClassicMember, old: ClassicMember, moment: Moment
    ) -> None:
        """The log refused the replacement: the old member is back in its place."""
        instance_id = old.group_instance_id
        assert instance_id is not None
        group.update(new, old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms, None)
        self._groups.cancel_session(group, new.member_id)
        restored = group.replace_static(instance_id, new.member_id, old.member_id)
        self._groups.extend_session(group, restored, moment)

    # ------------------------------------------------------------------ with an id

    def _known_id(
        self,
        group: ClassicGroup,
        request: m.JoinGroupRequest,
        caller: Caller,
        moment: Moment,
        reply: JoinReply,
    ) -> _Outcome:
        member_id, instance_id = request.member_id, request.group_instance_id
        names = [x.name for x in request.protocols]
        if not group.supports(request.protocol_type, names):
            return _Outcome([], join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        if member_id in group.pending_joins and instance_id is None:
            return self._add(group, request, caller, member_id, moment, reply)
        try:
            group.check_member(member_id, instance_id)
        except KafkaError as error:
            return _Outcome([], join_error(ErrorCode(error.code), member_id))
        member = group.members[member_id]
        same = member.protocols == protocols_of(request)
        if group.state is ClassicState.COMPLETING_REBALANCE and same:
            # It did not get its answer: it gets the current generation again.
            leads = group.is_leader(member_id)
            return _Outcome([], self._groups.joined(group, member_id, members=leads))
        if group.state is ClassicState.STABLE and same and not group.is_leader(member_id):
            return _Outcome([], self._groups.joined(group, member_id, members=False))
        # A leader that joins again asks for a rebalance: something that it assigns has changed.
        group.update(
            member,
            protocols_of(request),
            rebalance_timeout_of(request, caller),
            request.session_timeout_ms,
            reply,
        )
        return _Outcome(self._groups.rebalance_or_complete(group, moment))


def protocols_of(request: m.JoinGroupRequest) -> Protocols:
    """(name, metadata) of a JoinGroup request, copied out of the receive buffer."""
    return tuple((x.name, bytes(x.metadata)) for x in request.protocols)


def rebalance_timeout_of(request: m.JoinGroupRequest, caller: Caller) -> int:
    """Before v1 there was none on the wire: the session timeout counts for it. What is on the
    wire counts as it is, also if negative: nobody waits for such a member then."""
    has_its_own = caller.api_version >= REBALANCE_TIMEOUT_VERSION
    return request.rebalance_timeout_ms if has_its_own else request.session_timeout_ms


def random_uuid(random: Random) -> str:
    """A random UUID (version 4) in the usual notation."""
    raw = bytearray(random.random_bytes(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
