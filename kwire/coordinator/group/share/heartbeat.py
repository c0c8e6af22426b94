"""ShareGroupHeartbeat: joining, saying what changed, hearing which partitions to read; leaving.

Messages and their order measured on Apache Kafka 4.4; KIP-932. As much is done as can be done: the
member's subscription is recorded, the group gets a new epoch when what it reads has changed or
partitions have been initialized, a new target is computed when that is due, the member takes it,
and partitions without state are to be initialized.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from kwire.coordinator.group.assignment_jobs import finish
from kwire.coordinator.group.assignors.simple import ShareGroupSpec, ShareMemberSpec, assign_simple
from kwire.coordinator.group.assignors.spec import Assigning
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.share import records, state_partitions
from kwire.coordinator.group.share.groups import ShareGroups
from kwire.coordinator.group.share.state import (
    LEFT_EPOCH,
    Current,
    Member,
    ShareGroup,
    TopicPartitions,
)
from kwire.coordinator.group.share.state_partitions import Initialization
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

JOIN_EPOCH = 0
#: Members plus partitions up to which an assignment is computed within one heartbeat.
INLINE_SIZE_MAX = 400


class Heartbeat(NamedTuple):
    """The answer, and what the persister is to be asked once it is committed."""

    response: m.ShareGroupHeartbeatResponse
    initialization: Initialization | None = None


def check_request(request: m.ShareGroupHeartbeatRequest) -> None:
    """What can be refused whatever the group is: INVALID_REQUEST. A text of nothing but blanks
    counts as empty."""
    for text, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    ):
        if text is not None and all(character <= " " for character in text):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."
            )
    elif request.member_epoch < LEFT_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def heartbeat(
    groups: ShareGroups, request: m.ShareGroupHeartbeatRequest, caller: Caller, moment: Moment
) -> Result[Heartbeat]:
    """One request that `check_request` has passed; raises what refuses it."""
    if request.member_epoch == LEFT_EPOCH:
        return _leave(groups, request)
    return _Heartbeat(groups, request, caller, moment).run()


def _leave(groups: ShareGroups, request: m.ShareGroupHeartbeatRequest) -> Result[Heartbeat]:
    group = groups.find(request.group_id)
    if request.member_id not in group.members:
        raise _unknown_member(request)
    result = groups.fence(request.group_id, group, request.member_id)
    response = m.ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Result(result.records, Heartbeat(response), result.appended)


class _Heartbeat:
    """One heartbeat on its way."""

    def __init__(
        self,
        groups: ShareGroups,
        request: m.ShareGroupHeartbeatRequest,
        caller: Caller,
        moment: Moment,
    ) -> None:
        self._groups = groups
        self._request = request
        self._caller = caller
        self._moment = moment
        self._group_id = request.group_id
        self._records: list[CoordinatorRecord] = []
        # The epoch of an assignment that takes several turns, where none is computed for it.
        self._job_epoch: int | None = None
        self._is_refreshed = False

    def run(self) -> Result[Heartbeat]:
        request, groups = self._request, self._groups
        joins = request.member_epoch == JOIN_EPOCH
        if joins:
            group = groups.find_or_new(self._group_id)
        else:
            group = groups.find(self._group_id, named="Share group")
        self._check_room(group)
        before = group.members.get(request.member_id)
        if before is None and not joins:
            raise _unknown_member(request)
        where = group.where(request.member_id)
        self._check_epoch(where)
        member = self._updated(before)
        topic_names = group.topic_names(member.member_id, member.topic_names)
        epoch, changed = self._group_epoch(group, before, member, topic_names)
        target, target_epoch = self._target(group, member, epoch, topic_names)
        after = self._reconciled(where, member, target, target_epoch, changed)
        initialization = state_partitions.initialize(
            groups,
            self._group_id,
            group,
            epoch,
            topic_names,
            self._moment,
            self._records,
        )
        return Result(
            self._records,
            Heartbeat(self._response(member, where, after), initialization),
            lambda: self._appended(member.member_id, initialization),
        )

    def _appended(self, member_id: str, initialization: Initialization | None) -> None:
        groups, group_id, moment = self._groups, self._group_id, self._moment
        groups.extend_session(group_id, member_id, moment)
        if self._is_refreshed:
            groups.refreshed(group_id, moment)
        if self._job_epoch is not None:
            groups.assigning.start(
                group_id, self._job_epoch, partial(_begin, groups, group_id), moment
            )
        state_partitions.asked(groups, group_id, initialization, moment)

    # --- who it is ---

    def _check_room(self, group: ShareGroup) -> None:
        size_max = self._groups.settings.max_size
        if len(group.members) >= size_max and self._request.member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {size_max} members.",
            )

    def _check_epoch(self, where: Current) -> None:
        """FENCED_MEMBER_EPOCH unless the epoch is 0, the member's own, or its previous one (the
        answer with the new one was lost)."""
        epoch = self._request.member_epoch
        if epoch in (JOIN_EPOCH, where.epoch):
            return
        if epoch < where.epoch and epoch == where.previous_epoch:
            return
        if epoch > where.epoch:
            text = (
                f"The share group member has a greater member epoch ({epoch}) than the one known "
                f"by the group coordinator ({where.epoch})."
            )
        else:
            text = (
                f"The share group member has a smaller member epoch ({epoch}) than the one known "
                f"by the group coordinator ({where.epoch}), and it does not match the previous "
                f"member epoch ({where.previous_epoch})."
            )
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"{text} The member must abandon all its partitions and rejoin.",
        )

    # --- what it wants ---

    def _updated(self, before: Member | None) -> Member:
        """The member as the request leaves it; what the request does not say stays."""
        request = self._request
        old = before or Member(request.member_id, None, "", "", ())
        names = request.subscribed_topic_names
        return Member(
            member_id=request.member_id,
            rack_id=old.rack_id if request.rack_id is None else request.rack_id,
            client_id=self._caller.client_id,
            client_host=self._caller.client_host,
            topic_names=old.topic_names if names is None else tuple(sorted(set(names))),
        )

    def _group_epoch(
        self,
        group: ShareGroup,
        before: Member | None,
        member: Member,
        topic_names: list[str],
    ) -> tuple[int, bool]:
        """The group's epoch, a new one if what it reads has changed; and whether it has."""
        groups = self._groups
        changed = False
        if member != before:
            self._records.append(records.member(self._group_id, member))
            changed = member.topic_names != (() if before is None else before.topic_names)
        if group.target_epoch >= group.epoch:
            changed = changed or state_partitions.assignment_pending(group)
        if not changed and not groups.refresh_due(self._group_id, self._moment):
            return group.epoch, False
        self._is_refreshed = True
        metadata_hash = groups.hash_of(topic_names)
        changed = changed or metadata_hash != group.metadata_hash
        if not changed:
            return group.epoch, False
        epoch = group.epoch + 1
        self._records.append(records.group_epoch(self._group_id, epoch, metadata_hash))
        self._groups.counts.share_rebalances += 1
        return epoch, True

    # --- what it gets ---

    def _target(
        self, group: ShareGroup, member: Member, epoch: int, topic_names: list[str]
    ) -> tuple[TopicPartitions, int]:
        """The member's target and the epoch of it; a new one when it is due and small."""
        groups, moment = self._groups, self._moment
        present = group.targets.get(member.member_id, {}), group.target_epoch
        if epoch <= group.target_epoch or self._assignment_waits(group):
            return present
        if groups.assigning.is_running(self._group_id, epoch):
            return present
        if self._size(group, topic_names) > INLINE_SIZE_MAX:
            self._job_epoch = epoch  # all members are looked at when it begins
            return present
        members = {**group.members, member.member_id: member}
        spec = _spec(groups, group, members)
        assignment = finish(assign_simple(spec))
        self._records += records.targets(self._group_id, group.targets, assignment)
        self._records.append(records.target_epoch(self._group_id, epoch, moment.wall_ms))
        return assignment[member.member_id], epoch

    def _size(self, group: ShareGroup, topic_names: list[str]) -> int:
        """Of the members as they are with this request, and of the partitions to assign."""
        size = len(group.members) + (self._request.member_id not in group.members)
        if size > INLINE_SIZE_MAX:
            return size
        initialized = group.initialized()
        for name in topic_names:
            found = self._groups.topics.find(name)
            if found is not None and found.topic_id in initialized:
                size += len(initialized[found.topic_id].partitions)
        return size

    def _assignment_waits(self, group: ShareGroup) -> bool:
        """Whether share.assignment.interval.ms has not passed since the last one."""
        interval_ms = self._groups.group_config(self._group_id, "share.assignment.interval.ms")
        if not group.target_ms or not interval_ms:
            return False
        return self._moment.wall_ms < group.target_ms + interval_ms

    def _reconciled(
        self,
        where: Current,
        member: Member,
        target: TopicPartitions,
        target_epoch: int,
        changed: bool,
    ) -> Current:
        """Where the member stands afterwards: at its target, but for topics that it does not
        subscribe to."""
        if target_epoch == where.epoch and not changed:
            return where
        wanted = dict.fromkeys(member.topic_names)
        name_of = self._groups.topics.name_of
        assigned = {topic: indexes for topic, indexes in target.items() if name_of(topic) in wanted}
        if target_epoch == where.epoch:
            after = where._replace(assigned=assigned)
        else:
            after = Current(target_epoch, where.epoch, assigned)
        if after != where:
            self._records.append(records.current(self._group_id, member.member_id, after))
        return after

    def _response(
        self, member: Member, before: Current, after: Current
    ) -> m.ShareGroupHeartbeatResponse:
        request = self._request
        response = m.ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._groups.group_config(
                self._group_id, "share.heartbeat.interval.ms"
            ),
        )
        if (
            request.member_epoch == JOIN_EPOCH
            or request.subscribed_topic_names is not None
            or after.assigned != before.assigned
        ):
            response.assignment = m.ShareGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    m.ShareGroupHeartbeatResponse.TopicPartitions(
                        topic_id=topic, partitions=list(indexes)
                    )
                    for topic, indexes in after.assigned.items()
                ]
            )
        return response


def _begin(groups: ShareGroups, group_id: str) -> Assigning:
    """The assignment in slices of the group as it is."""
    group = groups.stored[group_id]
    return assign_simple(_spec(groups, group, group.members))


def _spec(groups: ShareGroups, group: ShareGroup, members: Mapping[str, Member]) -> ShareGroupSpec:
    """What the assignor sees: members, and the partitions that have their state."""
    resolved: dict[tuple[str, ...], tuple[bytes, ...]] = {}
    counts: dict[bytes, int] = {}
    specs = {}
    for member_id, member in members.items():
        topics = resolved.get(member.topic_names)
        if topics is None:
            found = [groups.topics.find(name) for name in member.topic_names]
            counts.update((x.topic_id, x.partition_count) for x in found if x is not None)
            topics = tuple(x.topic_id for x in found if x is not None)
            resolved[member.topic_names] = topics
        specs[member_id] = ShareMemberSpec(topics, group.targets.get(member_id, {}))
    initialized = group.initialized()
    assignable = {
        topic: [x for x in initialized[topic].partitions if x < count]
        for topic, count in counts.items()
        if topic in initialized
    }
    return ShareGroupSpec(specs, len(resolved) <= 1, assignable)


def _unknown_member(request: m.ShareGroupHeartbeatRequest) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {request.member_id} is not a member of group {request.group_id}.",
    )
