"""Generated from `schema/api/heartbeat.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class HeartbeatRequest(Request["HeartbeatResponse"]):
    """HeartbeatRequest, versions 0-4: a request."""

    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id")
    FIELDS = ("group_id", "generation_id", "member_id", "group_instance_id")
    API_KEY = 12
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class HeartbeatResponse(Message):
    """HeartbeatResponse, versions 0-4: a response."""

    __slots__ = ("error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code")
    API_KEY = 12
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
