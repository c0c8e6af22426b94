"""Generated from `schema/api/describe_groups.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    """DescribeGroupsRequest, versions 0-6: a request."""

    __slots__ = ("groups", "include_authorized_operations")
    FIELDS = ("groups", "include_authorized_operations")
    API_KEY = 15
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 6

    def __init__(
        self,
        *,
        groups: list[str] = UNSET,
        include_authorized_operations: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.groups = [] if groups is UNSET else groups
        self.include_authorized_operations = include_authorized_operations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeGroupsResponse(Message):
    """DescribeGroupsResponse, versions 0-6: a response."""

    __slots__ = ("groups", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "groups")
    API_KEY = 15
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 6

    class DescribedGroup(Struct):
        __slots__ = (
            "authorized_operations",
            "error_code",
            "error_message",
            "group_id",
            "group_state",
            "members",
            "protocol_data",
            "protocol_type",
        )
        FIELDS = (
            "error_code",
            "error_message",
            "group_id",
            "group_state",
            "protocol_type",
            "protocol_data",
            "members",
            "authorized_operations",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            protocol_type: str = "",
            protocol_data: str = "",
            members: list[DescribeGroupsResponse.DescribedGroupMember] = UNSET,
            authorized_operations: int = -2147483648,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.protocol_type = protocol_type
            self.protocol_data = protocol_data
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribedGroupMember(Struct):
        __slots__ = (
            "client_host",
            "client_id",
            "group_instance_id",
            "member_assignment",
            "member_id",
            "member_metadata",
        )
        FIELDS = (
            "member_id",
            "group_instance_id",
            "client_id",
            "client_host",
            "member_metadata",
            "member_assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            member_metadata: bytes = b"",
            member_assignment: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.member_metadata = member_metadata
            self.member_assignment = member_assignment
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeGroupsResponse.DescribedGroup] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
