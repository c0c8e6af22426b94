"""Generated from `schema/api/join_group.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class JoinGroupRequest(Request["JoinGroupResponse"]):
    """JoinGroupRequest, versions 0-9: a request."""

    __slots__ = (
        "group_id",
        "group_instance_id",
        "member_id",
        "protocol_type",
        "protocols",
        "reason",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )
    FIELDS = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    API_KEY = 11
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 9

    class JoinGroupRequestProtocol(Struct):
        __slots__ = ("metadata", "name")
        FIELDS = ("name", "metadata")

        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.metadata = metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = UNSET,
        reason: str | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is UNSET else protocols
        self.reason = reason
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class JoinGroupResponse(Message):
    """JoinGroupResponse, versions 0-9: a response."""

    __slots__ = (
        "error_code",
        "generation_id",
        "leader",
        "member_id",
        "members",
        "protocol_name",
        "protocol_type",
        "skip_assignment",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    API_KEY = 11
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 9

    class JoinGroupResponseMember(Struct):
        __slots__ = ("group_instance_id", "member_id", "metadata")
        FIELDS = ("member_id", "group_instance_id", "metadata")

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            metadata: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.metadata = metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponse.JoinGroupResponseMember] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is UNSET else members
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
