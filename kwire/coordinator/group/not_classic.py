"""What a kind without members of the classic protocol answers to their requests."""

from __future__ import annotations

from typing import NoReturn

from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.refusals import join_error, not_described
from kwire.coordinator.shard_interface import Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError


class NotClassic:
    """A part of a `GroupKind` (kinds.py)."""

    def join(
        self, request: m.JoinGroupRequest, caller: Caller, moment: Moment
    ) -> Result[m.JoinGroupResponse]:
        return Result((), join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def sync(self, request: m.SyncGroupRequest, moment: Moment) -> NoReturn:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def heartbeat(self, request: m.HeartbeatRequest, moment: Moment) -> NoReturn:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def leave(self, request: m.LeaveGroupRequest, moment: Moment) -> NoReturn:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        return not_described(group_id, f"Group {group_id} is not a classic group.")
