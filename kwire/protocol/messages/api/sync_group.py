"""Generated from `schema/api/sync_group.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class SyncGroupRequest(Request["SyncGroupResponse"]):
    """SyncGroupRequest, versions 0-5: a request."""

    __slots__ = (
        "assignments",
        "generation_id",
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_name",
        "protocol_type",
    )
    FIELDS = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    API_KEY = 14
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    class SyncGroupRequestAssignment(Struct):
        __slots__ = ("assignment", "member_id")
        FIELDS = ("member_id", "assignment")

        def __init__(
            self,
            *,
            member_id: str = "",
            assignment: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.assignment = assignment
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is UNSET else assignments
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class SyncGroupResponse(Message):
    """SyncGroupResponse, versions 0-5: a response."""

    __slots__ = ("assignment", "error_code", "protocol_name", "protocol_type", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    API_KEY = 14
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
