"""The rebalance of classic groups: collecting members, fixing a generation, missed deadlines.

A rebalance prepares (PreparingRebalance: every JoinGroup waits), completes its join phase when all
members are in or the rebalance timeout has passed, and then waits for the leader's SyncGroup. The
first rebalance of an empty group waits group.initial.rebalance.delay.ms, extended while members
keep coming (KIP-134).

Methods change soft state only and return the records that follow; an Empty group is the only case
that has one.
"""

from __future__ import annotations

from kwire.coordinator.group.classic import records
from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.classic.stored import StoredClassicGroups
from kwire.coordinator.group.classic.storing import Storing
from kwire.coordinator.group.counts import GroupCounts
from kwire.coordinator.group.kinds import GroupDeadlines, TimerKey
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.shard_interface import AnyReply, AnyResponse, CoordinatorRecord, Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

Records = list[CoordinatorRecord]

MEMBER_TIMER, JOIN_TIMER, SYNC_TIMER, STORE_TIMER = "member", "join", "sync", "store"

_ACTIVE_STATES = (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)


class ClassicGroups:
    """The classic groups of one shard with their soft state, made when first needed. Parked
    replies that are answered go to `replies`."""

    def __init__(
        self,
        stored: StoredClassicGroups,
        settings: GroupSettings,
        deadlines: GroupDeadlines,
        replies: list[tuple[AnyReply, AnyResponse]],
        counts: GroupCounts,
    ) -> None:
        self.counts = counts
        self.stored = stored.groups
        self.settings = settings
        self.deadlines = deadlines
        self.live: dict[str, ClassicGroup] = {}
        # group -> the assignment that is made into its record
        self.storing: dict[str, Storing] = {}
        self._replies = replies
        # group -> (delay, what remains) of an initial rebalance, in ms
        self._initial: dict[str, tuple[int, int]] = {}

    # ------------------------------------------------------------------ finding

    def find(self, group_id: str) -> ClassicGroup | None:
        """The group's soft state; None when there is no classic group of that name."""
        group = self.live.get(group_id)
        if group is None:
            stored = self.stored.get(group_id)
            if stored is None:
                return None
            group = self.live[group_id] = ClassicGroup(group_id, stored)
        return group

    def view(self, group_id: str) -> ClassicGroup | None:
        """As `find`, for reading: what is made only for that is not kept."""
        group = self.live.get(group_id)
        if group is None and group_id in self.stored:
            group = ClassicGroup(group_id, self.stored[group_id])
        return group

    def create(self, group_id: str, moment: Moment) -> ClassicGroup:
        group = self.live[group_id] = ClassicGroup(group_id)
        group.state_timestamp_ms = moment.wall_ms
        return group

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that is gone."""
        group = self.live.pop(group_id, None)
        self._initial.pop(group_id, None)
        self.storing.pop(group_id, None)
        self.deadlines.cancel((STORE_TIMER, group_id))
        self.deadlines.cancel((JOIN_TIMER, group_id))
        self.deadlines.cancel((SYNC_TIMER, group_id))
        if group is not None:
            for member_id in (*group.members, *group.pending_joins):
                self.deadlines.cancel((MEMBER_TIMER, group_id, member_id))

    def drop_idle(self, group: ClassicGroup) -> None:
        """Drop soft state that can be made again from the records: an Empty group nobody is
        about to join."""
        idle = group.state is ClassicState.EMPTY and not group.pending_joins
        if idle and self.stored.get(group.group_id) == group.to_stored({}):
            self.live.pop(group.group_id, None)

    def load(self, moment: Moment) -> None:
        """After replay: give every member of a stored group a full session from now. A group
        that is larger than group.max.size now rebalances, which sheds the surplus."""
        for group_id, stored in self.stored.items():
            if not stored.members:
                continue
            group = self.live[group_id] = ClassicGroup(group_id, stored)
            for member in group.members.values():
                self.extend_session(group, member, moment)
            if len(group.members) > self.settings.max_size:
                self.prepare(group, moment)

    def waiting(self) -> list[AnyReply]:
        """Every parked reply."""
        parked: list[AnyReply] = []
        for group in self.live.values():
            for member in group.members.values():
                if member.awaiting_join is not None:
                    parked.append(member.awaiting_join)
                if member.awaiting_sync is not None:
                    parked.append(member.awaiting_sync)
        return parked

    # ------------------------------------------------------------------ replies

    def answer_join(
        self, group: ClassicGroup, member: ClassicMember, response: m.JoinGroupResponse
    ) -> None:
        """Answer the member's parked JoinGroup, if there is one."""
        reply = member.awaiting_join
        if reply is not None:
            group.await_join(member, None)
            self._replies.append((reply, response))

    def answer_sync(self, member: ClassicMember, response: m.SyncGroupResponse) -> bool:
        """Answer the member's parked SyncGroup; whether there was one."""
        reply = member.awaiting_sync
        if reply is None:
            return False
        member.awaiting_sync = None
        self._replies.append((reply, response))
        return True

    def interrupt(self, group: ClassicGroup) -> None:
        """Tell everybody who waits to join again."""
        for member in group.members.values():
            response = m.JoinGroupResponse(
                error_code=ErrorCode.REBALANCE_IN_PROGRESS,
                member_id=member.member_id,
                protocol_name=None,
            )
            self.answer_join(group, member, response)
            refusal = m.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            self.answer_sync(member, refusal)

    def propagate(self, group: ClassicGroup, error: ErrorCode, moment: Moment) -> None:
        """Answer every parked SyncGroup, with the assignments or with an error."""
        ok = error == ErrorCode.NONE
        for member in group.members.values():
            response = m.SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if ok else None,
                protocol_name=group.protocol if ok else None,
                assignment=member.assignment,
            )
            # Deadlines that passed while the member waited were ignored and are not set again.
            if self.answer_sync(member, response):
                self.extend_session(group, member, moment)

    def joined(self, group: ClassicGroup, member_id: str, *, members: bool) -> m.JoinGroupResponse:
        """The JoinGroup answer of the current generation."""
        return m.JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol or None,  # an empty one is none (Apache Kafka 4.4)
            leader=group.leader or "",
            member_id=member_id,
            members=self.member_list(group) if members else [],
        )

    def member_list(self, group: ClassicGroup) -> list[m.JoinGroupResponse.JoinGroupResponseMember]:
        return [
            m.JoinGroupResponse.JoinGroupResponseMember(
                member_id=x.member_id,
                group_instance_id=x.group_instance_id,
                metadata=x.metadata(group.protocol),
            )
            for x in group.members.values()
        ]

    # ------------------------------------------------------------------ deadlines

    def extend_session(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        moment: Moment,
        timeout_ms: int | None = None,
    ) -> None:
        """The member has `timeout_ms` (its session timeout) from now."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.deadlines.schedule(
            (MEMBER_TIMER, group.group_id, member.member_id), moment.now_ms + timeout_ms
        )

    def cancel_session(self, group: ClassicGroup, member_id: str) -> None:
        self.deadlines.cancel((MEMBER_TIMER, group.group_id, member_id))

    def expire(self, key: TimerKey, moment: Moment) -> Records:
        """Act on a deadline of ours that has passed."""
        group = self.live.get(key[1])
        if group is None:
            return []
        if key[0] == MEMBER_TIMER:
            return self._member_overdue(group, key[2], moment)
        if key[0] == SYNC_TIMER:
            return self._sync_overdue(group, moment)
        if group.group_id in self._initial:
            return self._initial_delay_over(group, moment)
        return self.complete_join(group, moment)

    def _member_overdue(self, group: ClassicGroup, member_id: str, moment: Moment) -> Records:
        if member_id in group.pending_joins:
            return self.remove_pending(group, member_id, moment)
        member = group.members.get(member_id)
        if member is None or member.keeps_alive():
            return []
        self.remove_member(group, member)
        return self.after_removal(group, moment)

    def _sync_overdue(self, group: ClassicGroup, moment: Moment) -> Records:
        """Members that joined but did not sync in time are out."""
        if group.state not in _ACTIVE_STATES or not group.pending_syncs:
            return []
        for member_id in list(group.pending_syncs):
            self.remove_member(group, group.members[member_id])
        return self.prepare(group, moment)

    def _initial_delay_over(self, group: ClassicGroup, moment: Moment) -> Records:
        delay_ms, remaining_ms = self._initial[group.group_id]
        if not group.new_member_added or remaining_ms == 0:
            return self.complete_join(group, moment)
        group.new_member_added = False
        next_delay_ms = min(self.settings.initial_rebalance_delay_ms, remaining_ms)
        self._initial[group.group_id] = (next_delay_ms, max(remaining_ms - delay_ms, 0))
        self.deadlines.schedule((JOIN_TIMER, group.group_id), moment.now_ms + next_delay_ms)
        return []

    # ------------------------------------------------------------------ members going

    def remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a member out. A JoinGroup of it that waits is answered with UNKNOWN_MEMBER_ID."""
        response = m.JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="", protocol_name=None
        )
        self.answer_join(group, member, response)
        self.answer_sync(member, m.SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        self.cancel_session(group, member.member_id)

    def remove_pending(self, group: ClassicGroup, member_id: str, moment: Moment) -> Records:
        """Take back an id that was handed out and not used."""
        group.remove(member_id)
        self.cancel_session(group, member_id)
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_joined():
            return self.complete_join(group, moment)
        return []

    def after_removal(self, group: ClassicGroup, moment: Moment) -> Records:
        """Rebalance without the member that has gone, or go on with the rebalance under way."""
        if group.state in _ACTIVE_STATES:
            return self.prepare(group, moment)
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_joined():
            return self.complete_join(group, moment)
        return []

    # ------------------------------------------------------------------ phases

    def rebalance_or_complete(self, group: ClassicGroup, moment: Moment) -> Records:
        """Start a rebalance; while one is being prepared, complete it if that can be done."""
        if group.state in _ACTIVE_STATES or group.state is ClassicState.EMPTY:
            return self.prepare(group, moment)
        return self.complete_if_joined(group, moment)

    def complete_if_joined(self, group: ClassicGroup, moment: Moment) -> Records:
        """Complete the join phase if everybody is in, unless its initial delay is running."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return []
        if group.previous_state is ClassicState.EMPTY or not group.all_joined():
            return []
        return self.complete_join(group, moment)

    def prepare(self, group: ClassicGroup, moment: Moment) -> Records:
        """Begin a rebalance: who waits for an assignment has to join again."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = b""
            self.propagate(group, ErrorCode.REBALANCE_IN_PROGRESS, moment)
        group.pending_syncs.clear()
        self.deadlines.cancel((SYNC_TIMER, group.group_id))
        initial = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING_REBALANCE, moment.wall_ms)
        timeout_ms = group.rebalance_timeout_ms()
        if initial:
            delay_ms = self.settings.initial_rebalance_delay_ms
            self._initial[group.group_id] = (delay_ms, max(timeout_ms - delay_ms, 0))
            self.deadlines.schedule((JOIN_TIMER, group.group_id), moment.now_ms + delay_ms)
            return []
        if group.all_joined():
            settle_ms = self.settings.rejoin_settle_ms
            if not settle_ms or not group.members:
                return self.complete_join(group, moment)
            timeout_ms = settle_ms
        self.deadlines.schedule((JOIN_TIMER, group.group_id), moment.now_ms + timeout_ms)
        return []

    def complete_join(self, group: ClassicGroup, moment: Moment) -> Records:
        """End the join phase: dynamic members that have not rejoined are out, static ones keep
        their place; then the next generation begins, or the group is Empty."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return []
        self.deadlines.cancel((JOIN_TIMER, group.group_id))
        self._initial.pop(group.group_id, None)
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.group_instance_id is None:
                self.remove_member(group, member)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has rejoined: wait until one does or their
            # sessions end.
            self.deadlines.schedule(
                (JOIN_TIMER, group.group_id), moment.now_ms + group.rebalance_timeout_ms()
            )
            return []
        group.start_generation(moment.wall_ms)
        if not group.members:
            return [records.group_metadata(group.group_id, group.to_stored({}))]
        for member in group.members.values():
            leads = group.is_leader(member.member_id)
            response = self.joined(group, member.member_id, members=leads)
            self.answer_join(group, member, response)
            self.extend_session(group, member, moment)
            member.is_new = False
            group.pending_syncs[member.member_id] = None
        self.deadlines.schedule(
            (SYNC_TIMER, group.group_id), moment.now_ms + group.rebalance_timeout_ms()
        )
        return []
