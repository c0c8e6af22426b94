"""Generated from `schema/api/leave_group.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    """LeaveGroupRequest, versions 0-5: a request."""

    __slots__ = ("group_id", "member_id", "members")
    FIELDS = ("group_id", "member_id", "members")
    API_KEY = 13
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    class MemberIdentity(Struct):
        __slots__ = ("group_instance_id", "member_id", "reason")
        FIELDS = ("member_id", "group_instance_id", "reason")

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            reason: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.reason = reason
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[LeaveGroupRequest.MemberIdentity] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is UNSET else members
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class LeaveGroupResponse(Message):
    """LeaveGroupResponse, versions 0-5: a response."""

    __slots__ = ("error_code", "members", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "members")
    API_KEY = 13
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    class MemberResponse(Struct):
        __slots__ = ("error_code", "group_instance_id", "member_id")
        FIELDS = ("member_id", "group_instance_id", "error_code")

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = "",
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[LeaveGroupResponse.MemberResponse] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is UNSET else members
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
