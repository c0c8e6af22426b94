"""Members that leave: for good, or, static ones, for as long as their session lasts (KIP-848)."""

from __future__ import annotations

from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.groups import ConsumerGroups
from kwire.coordinator.group.consumer.state import (
    LEFT_STATIC_EPOCH,
    ConsumerGroup,
    Partitions,
)
from kwire.coordinator.shard_interface import Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


def leave(
    groups: ConsumerGroups, request: m.ConsumerGroupHeartbeatRequest, moment: Moment
) -> Result[m.ConsumerGroupHeartbeatResponse]:
    """A heartbeat with epoch -1 or -2; raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and
    GROUP_ID_NOT_FOUND."""
    group = groups.find(request.group_id, named="Group")
    response = m.ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is not None:
        check_static(group, request.group_id, request.instance_id, request.member_id)
    elif request.member_id not in group.members:
        raise unknown_member(request.group_id, request.member_id)
    if request.member_epoch != LEFT_STATIC_EPOCH:
        result = groups.fence(request.group_id, group, [request.member_id], moment)
        return Result(result.records, response, result.appended)
    where = group.where(request.member_id)
    absent = where._replace(
        epoch=LEFT_STATIC_EPOCH,
        assigned=_without_epochs(where.assigned),
        pending_revocation={},
    )
    made = [records.current(request.group_id, request.member_id, absent)]
    return Result(made, response)


def check_static(group: ConsumerGroup, group_id: str, instance_id: str, member_id: str) -> None:
    """The instance id has to be known and owned by the member."""
    owner = group.static_members.get(instance_id)
    if owner is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{owner}.",
        )


def unknown_member(group_id: str, member_id: str | None) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def _without_epochs(partitions: Partitions) -> Partitions:
    return {topic: dict.fromkeys(indexes, 0) for topic, indexes in partitions.items()}
