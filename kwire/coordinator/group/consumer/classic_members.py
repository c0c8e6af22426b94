"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A JoinGroup is a heartbeat with every field: the member moves one step towards its target and
has its epoch as generation; SyncGroup hands it what it has. A Heartbeat asks it to join again
when the group or the member is to move on; it then has its rebalance timeout to do so, and as
long again for its SyncGroup. (KIP-848, measured on Apache Kafka 4.4.)
"""

from __future__ import annotations

from kwire.clock import Random
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.consumer import migration, records
from kwire.coordinator.group.consumer.groups import JOIN_TIMER, SYNC_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.heartbeat import check_room
from kwire.coordinator.group.consumer.leaving import check_static, unknown_member
from kwire.coordinator.group.consumer.progress import Progress
from kwire.coordinator.group.consumer.state import (
    JOINING,
    ClassicProtocols,
    ConsumerGroup,
    Current,
    Member,
    MemberState,
    TopicPartitions,
)
from kwire.coordinator.group.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    parse_subscription,
)
from kwire.coordinator.group.refusals import join_error
from kwire.coordinator.shard_interface import Moment, Result
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError

MEMBER_ID_REQUIRED_VERSION = 4


# --- JoinGroup ---


def join(
    groups: ConsumerGroups,
    request: m.JoinGroupRequest,
    caller: Caller,
    random: Random,
    moment: Moment,
) -> Result[m.JoinGroupResponse]:
    """One JoinGroup to a consumer group that has members; raises what refuses it."""
    group = groups.find(request.group_id)
    if groups.settings.migration_policy == migration.DISABLED:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    nameless = not request.member_id
    member_id = uuids.to_text(uuids.random_uuid(random)) if nameless else request.member_id
    check_room(groups, group, member_id)
    _check_protocols(group, request, member_id)
    is_dynamic = request.group_instance_id is None
    if nameless and is_dynamic and caller.api_version >= MEMBER_ID_REQUIRED_VERSION:
        return Result((), join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    try:
        subscription = parse_subscription(bytes(request.protocols[0].metadata))
    except MalformedError:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None
    return _join(groups, group, request, caller, (member_id, nameless, subscription), moment)


def _join(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    request: m.JoinGroupRequest,
    caller: Caller,
    who: tuple[str, bool, Subscription],
    moment: Moment,
) -> Result[m.JoinGroupResponse]:
    group_id, (member_id, nameless, subscription) = request.group_id, who
    progress = Progress(groups, group_id, moment, [])
    before, where = _identify(group, request, member_id, nameless, progress)
    member = _updated(before, request, caller, member_id, subscription)
    after = progress.move(group, before, where, member, _owned(groups, subscription))
    response = m.JoinGroupResponse(
        generation_id=after.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
        leader="",
        member_id=member_id,
        members=[],
    )
    replaced = None if progress.replaced is None else group.members[progress.replaced]
    if replaced is not None and replaced.classic is None:
        members = {k: v for k, v in group.members.items() if k != replaced.member_id}
        members[member_id] = member
        if migration.may_downgrade(members, groups.settings, groups.classic.settings.max_size):
            return _downgraded(groups, group, progress, members, response, moment)

    def appended() -> None:
        progress.appended(group, member)
        groups.cancel_timers(group_id, member_id)
        groups.extend_session(group_id, member, moment)
        timeout_ms = member.rebalance_timeout_ms
        groups.deadlines.schedule((SYNC_TIMER, group_id, member_id), moment.now_ms + timeout_ms)

    return Result(progress.records, response, appended)


def _downgraded(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    progress: Progress,
    members: dict[str, Member],
    response: m.JoinGroupResponse,
    moment: Moment,
) -> Result[m.JoinGroupResponse]:
    """The last member of the consumer protocol was replaced: the group is a classic one."""
    group_id, replaced, member_id = progress.group_id, progress.replaced, response.member_id
    targets = dict(group.targets)
    targets[member_id] = targets.pop(replaced or "", {})
    made, record = migration.downgraded(
        group_id, members, targets, group.epoch, groups.topics, moment.wall_ms
    )
    written = [*progress.records, *records.whole_group_tombstones(group_id, members), record]

    def appended() -> None:
        groups.become_classic(group_id, group, made, moment)

    return Result(written, response, appended)


def _check_protocols(group: ConsumerGroup, request: m.JoinGroupRequest, member_id: str) -> None:
    """All classic members, and this one, need to have one protocol in common."""
    names = [x.name for x in request.protocols]
    others = [
        {name for name, _ in member.classic.protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    if request.protocol_type != PROTOCOL_TYPE or not any(
        all(name in supported for supported in others) for name in names
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _identify(
    group: ConsumerGroup,
    request: m.JoinGroupRequest,
    member_id: str,
    nameless: bool,
    progress: Progress,
) -> tuple[Member | None, Current]:
    """The member as it is so far, and where it stands."""
    instance_id = request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id), group.where(member_id)
    if not nameless:
        check_static(group, request.group_id, instance_id, member_id)
        return group.members[member_id], group.where(member_id)
    owner = group.static_members.get(instance_id)
    if owner is None:
        return None, JOINING
    where = group.where(owner)._replace(epoch=0, previous_epoch=0)
    return progress.replace(group, owner, member_id, where), where


def _updated(
    before: Member | None,
    request: m.JoinGroupRequest,
    caller: Caller,
    member_id: str,
    subscription: Subscription,
) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    if timeout_ms == -1:
        timeout_ms = request.session_timeout_ms
    protocols = tuple((x.name, bytes(x.metadata)) for x in request.protocols)
    old_rack = None if before is None else before.rack_id
    old_instance = None if before is None else before.instance_id
    return Member(
        member_id=member_id,
        instance_id=request.group_instance_id or old_instance,
        rack_id=subscription.rack_id or old_rack,
        client_id=caller.client_id,
        client_host=caller.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        topic_regex="" if before is None else before.topic_regex,
        rebalance_timeout_ms=timeout_ms,
        server_assignor=None if before is None else before.server_assignor,
        classic=ClassicProtocols(request.session_timeout_ms, protocols),
    )


def _owned(groups: ConsumerGroups, subscription: Subscription) -> TopicPartitions:
    """What the member says it has, of the topics that exist."""
    found: TopicPartitions = {}
    for name, indexes in subscription.owned.items():
        info = groups.topics.find(name)
        if info is not None:
            found[info.topic_id] = indexes
    return found


# --- SyncGroup, Heartbeat ---


def sync(
    groups: ConsumerGroups, request: m.SyncGroupRequest, moment: Moment
) -> Result[m.SyncGroupResponse]:
    """One SyncGroup: what the member has; raises what refuses it."""
    group_id, member_id = request.group_id, request.member_id
    group = groups.find(group_id)
    member = _member(group, group_id, member_id, request.group_instance_id)
    where = group.where(member_id)
    assert member.classic is not None
    if request.generation_id != where.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    name = member.classic.protocols[0][0]
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        name,
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.epoch > where.epoch and where.state != MemberState.UNREVOKED_PARTITIONS:
        _await_join(groups, group_id, member, moment)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    groups.deadlines.cancel((SYNC_TIMER, group_id, member_id))
    groups.extend_session(group_id, member, moment)
    response = m.SyncGroupResponse(
        protocol_type=PROTOCOL_TYPE,
        protocol_name=name,
        assignment=migration.assignment_of(member, where.assigned, groups.topics),
    )
    return Result((), response)


def heartbeat(
    groups: ConsumerGroups, request: m.HeartbeatRequest, moment: Moment
) -> Result[m.HeartbeatResponse]:
    """One Heartbeat: whether the member has to join again; raises what refuses it."""
    group_id, member_id = request.group_id, request.member_id
    group = groups.find(group_id)
    member = _member(group, group_id, member_id, request.group_instance_id)
    where = group.where(member_id)
    if request.generation_id != where.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    groups.extend_session(group_id, member, moment)
    code = ErrorCode.NONE
    if (
        where.epoch < group.epoch
        or where.state == MemberState.UNREVOKED_PARTITIONS
        or (where.state == MemberState.UNRELEASED_PARTITIONS and _is_free(group, member, where))
    ):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        _await_join(groups, group_id, member, moment)
    return Result((), m.HeartbeatResponse(error_code=code))


def _is_free(group: ConsumerGroup, member: Member, where: Current) -> bool:
    """Whether everything that the member waits for has been released by now."""
    for topic, indexes in group.targets.get(member.member_id, {}).items():
        have = where.assigned.get(topic, {})
        for partition in indexes:
            if partition not in have and (topic, partition) in group.partition_epochs:
                return False
    return True


def _await_join(groups: ConsumerGroups, group_id: str, member: Member, moment: Moment) -> None:
    """From the first answer that says so, the member has its rebalance timeout to join."""
    key = (JOIN_TIMER, group_id, member.member_id)
    if key not in groups.deadlines:
        groups.deadlines.schedule(key, moment.now_ms + member.rebalance_timeout_ms)


def _member(group: ConsumerGroup, group_id: str, member_id: str, instance_id: str | None) -> Member:
    """The classic member that asks; raises UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID."""
    if instance_id is not None:
        check_static(group, group_id, instance_id, member_id)
    member = group.members.get(member_id)
    if member is None or member.classic is None:
        raise unknown_member(group_id, member_id)
    return member


# --- LeaveGroup ---


def leave(
    groups: ConsumerGroups, request: m.LeaveGroupRequest, moment: Moment
) -> Result[m.LeaveGroupResponse]:
    """One LeaveGroup in the form of v3-5. Members of either protocol can be removed by it: an
    administrator empties a group so (KAFKA-18188)."""
    group_id = request.group_id
    group = groups.find(group_id)
    answers: list[m.LeaveGroupResponse.MemberResponse] = []
    gone: dict[str, None] = {}
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            gone[_leaving(group, group_id, identity)] = None
        except KafkaError as error:
            code = ErrorCode(error.code)
        answers.append(
            m.LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=code,
            )
        )
    response = m.LeaveGroupResponse(members=answers)
    if not gone:
        return Result((), response)
    fenced = groups.fence(group_id, group, list(gone), moment)
    return Result(fenced.records, response, fenced.appended)


def _leaving(
    group: ConsumerGroup, group_id: str, identity: m.LeaveGroupRequest.MemberIdentity
) -> str:
    """The id of the member, of either protocol, that is to leave; an administrator may know the
    instance only."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        if not member_id:
            member_id = group.static_members.get(instance_id, "")
        check_static(group, group_id, instance_id, member_id)
    if member_id not in group.members:
        raise unknown_member(group_id, member_id)
    return member_id
