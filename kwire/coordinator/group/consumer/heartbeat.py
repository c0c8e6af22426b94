"""ConsumerGroupHeartbeat: joining, saying what changed, hearing what to give up and take.

Messages and their order measured on Apache Kafka 4.4; KIP-848.
"""

from __future__ import annotations

from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.consumer.groups import JOIN_TIMER, SYNC_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.leaving import check_static, leave, unknown_member
from kwire.coordinator.group.consumer.progress import Progress
from kwire.coordinator.group.consumer.reconcile import indexes_of, is_subset
from kwire.coordinator.group.consumer.state import (
    JOINING,
    LEFT_EPOCH,
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    Current,
    Member,
    TopicPartitions,
)
from kwire.coordinator.shard_interface import Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.regex import PatternRefused, compile_pattern

JOIN_EPOCH = 0


def check_request(
    request: m.ConsumerGroupHeartbeatRequest, api_version: int, assignors: tuple[str, ...]
) -> None:
    """What can be refused whatever the group is: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.

    A text of nothing but blanks counts as empty.
    """
    stays_or_leaves = request.member_epoch > JOIN_EPOCH or request.member_epoch == LEFT_EPOCH
    if (api_version >= 1 or stays_or_leaves) and _is_blank(request.member_id):
        raise _invalid("MemberId can't be empty.")
    if _is_blank(request.group_id):
        raise _invalid("GroupId can't be empty.")
    if _is_blank(request.instance_id):
        raise _invalid("InstanceId can't be empty.")
    if _is_blank(request.rack_id):
        raise _invalid("RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    if request.member_epoch == LEFT_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if request.member_epoch < LEFT_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _is_blank(text: str | None) -> bool:
    """Whether there is a text, of nothing but what Java's `trim` takes away."""
    return text is not None and all(character <= " " for character in text)


def heartbeat(
    groups: ConsumerGroups,
    request: m.ConsumerGroupHeartbeatRequest,
    caller: Caller,
    moment: Moment,
) -> Result[m.ConsumerGroupHeartbeatResponse]:
    """One request that `check_request` has passed; the response is the API's."""
    if request.member_epoch < JOIN_EPOCH:
        return leave(groups, request, moment)
    return _Heartbeat(groups, request, caller, moment).run()


class _Heartbeat:
    """One heartbeat on its way (see Progress)."""

    def __init__(
        self,
        groups: ConsumerGroups,
        request: m.ConsumerGroupHeartbeatRequest,
        caller: Caller,
        moment: Moment,
    ) -> None:
        self._groups = groups
        self._request = request
        self._caller = caller
        self._moment = moment
        self._group_id = request.group_id
        self._owned = _owned(request)
        self._progress = Progress(groups, request.group_id, moment, [])
        self._upgrades = False

    def run(self) -> Result[m.ConsumerGroupHeartbeatResponse]:
        request, groups, progress = self._request, self._groups, self._progress
        joins = request.member_epoch == JOIN_EPOCH
        if joins:
            group, progress.records = groups.find_or_new(self._group_id)
            self._upgrades = bool(progress.records)
        else:
            group = groups.find(self._group_id)
        check_room(groups, group, request.member_id)
        before, where = self._identify(group, joins)
        member = self._updated(before)
        if member.topic_regex and (before is None or before.topic_regex != member.topic_regex):
            _check_pattern(member.topic_regex)
        after = progress.move(group, before, where, member, self._owned)
        return Result(
            progress.records,
            self._response(member, where, after),
            lambda: self._appended(group, member, where, after),
        )

    def _appended(
        self, group: ConsumerGroup, member: Member, before: Current, after: Current
    ) -> None:
        groups, moment = self._groups, self._moment
        if self._upgrades:
            groups.upgraded(self._group_id, moment)
        self._progress.appended(group, member)
        if member.topic_regex:
            groups.heard_pattern(self._group_id, self._caller.describes, moment)
        groups.deadlines.cancel((JOIN_TIMER, self._group_id, member.member_id))
        groups.deadlines.cancel((SYNC_TIMER, self._group_id, member.member_id))
        groups.extend_session(self._group_id, member, moment)
        groups.watch_revocation(self._group_id, member, before, after, moment)

    # --- who it is ---

    def _identify(self, group: ConsumerGroup, joins: bool) -> tuple[Member | None, Current]:
        """The member's subscription so far and where it stands."""
        request = self._request
        if request.instance_id is not None and joins:
            return self._take_over(group, request.instance_id)
        if request.instance_id is not None:
            check_static(group, self._group_id, request.instance_id, request.member_id)
        member = group.members.get(request.member_id)
        if member is None:
            if joins:
                return None, JOINING
            raise unknown_member(self._group_id, request.member_id)
        where = group.where(request.member_id)
        if not joins:
            self._check_epoch(where)
        return member, where

    def _take_over(self, group: ConsumerGroup, instance_id: str) -> tuple[Member | None, Current]:
        """A static member comes (back): it takes the place of its predecessor. A member that is
        there already may take an instance id that is free."""
        request = self._request
        owner = group.static_members.get(instance_id)
        if owner is None:
            member = group.members.get(request.member_id)
            return member, JOINING if member is None else group.where(request.member_id)
        where = group.where(owner)
        if where.epoch != LEFT_STATIC_EPOCH and group.members[owner].classic is None:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {instance_id} cannot "
                f"join the group because the instance id is owned by {owner} member.",
            )
        taken = where._replace(epoch=0, previous_epoch=0)
        return self._progress.replace(group, owner, request.member_id, taken), taken

    def _check_epoch(self, where: Current) -> None:
        """FENCED_MEMBER_EPOCH unless the epoch is the member's own, or its previous one with
        nothing owned but what is assigned (the answer with the new one was lost)."""
        epoch = self._request.member_epoch
        if epoch == where.epoch:
            return
        relation = "greater" if epoch > where.epoch else "smaller"
        if (
            epoch < where.epoch
            and epoch == where.previous_epoch
            and is_subset(self._owned, where.assigned)
        ):
            return
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({epoch}) than the one known "
            f"by the group coordinator ({where.epoch}). The member must abandon all its partitions "
            "and rejoin.",
        )

    # --- what it wants ---

    def _updated(self, before: Member | None) -> Member:
        """The member as the request leaves it; what the request does not say stays."""
        request = self._request
        old = before or Member(
            member_id=request.member_id,
            instance_id=None,
            rack_id=None,
            client_id="",
            client_host="",
            topic_names=(),
            topic_regex="",
            rebalance_timeout_ms=-1,
            server_assignor=None,
        )
        names = request.subscribed_topic_names
        regex = request.subscribed_topic_regex
        timeout_ms = request.rebalance_timeout_ms
        return Member(
            member_id=request.member_id,
            instance_id=old.instance_id if request.instance_id is None else request.instance_id,
            rack_id=old.rack_id if request.rack_id is None else request.rack_id,
            client_id=self._caller.client_id,
            client_host=self._caller.client_host,
            topic_names=old.topic_names if names is None else tuple(sorted(set(names))),
            topic_regex=old.topic_regex if regex is None else regex,
            rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            server_assignor=(
                old.server_assignor if request.server_assignor is None else request.server_assignor
            ),
        )

    def _response(
        self, member: Member, before: Current, after: Current
    ) -> m.ConsumerGroupHeartbeatResponse:
        request = self._request
        full = (
            request.rebalance_timeout_ms != -1
            and (
                request.subscribed_topic_names is not None
                or request.subscribed_topic_regex is not None
            )
            and request.topic_partitions is not None
        )
        response = m.ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._groups.group_config(
                self._group_id, "consumer.heartbeat.interval.ms"
            ),
        )
        assigned = indexes_of(after.assigned)
        if request.member_epoch == JOIN_EPOCH or full or assigned != indexes_of(before.assigned):
            response.assignment = m.ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    m.ConsumerGroupHeartbeatResponse.TopicPartitions(
                        topic_id=topic, partitions=list(indexes)
                    )
                    for topic, indexes in assigned.items()
                ]
            )
        return response


def check_room(groups: ConsumerGroups, group: ConsumerGroup, member_id: str) -> None:
    """Raise GROUP_MAX_SIZE_REACHED when there is no room for one member more."""
    if len(group.members) >= groups.settings.max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of "
            f"{groups.settings.max_size} members.",
        )


def _owned(request: m.ConsumerGroupHeartbeatRequest) -> TopicPartitions | None:
    """What the member says it has."""
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: tuple(topic.partitions) for topic in request.topic_partitions}


def _check_pattern(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except PatternRefused as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error.reason}.",
        ) from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
