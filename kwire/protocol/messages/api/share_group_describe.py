"""Generated from `schema/api/share_group_describe.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"]):
    """ShareGroupDescribeRequest, version 1: a request."""

    __slots__ = ("group_ids", "include_authorized_operations")
    FIELDS = ("group_ids", "include_authorized_operations")
    API_KEY = 77
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 1

    def __init__(
        self,
        *,
        group_ids: list[str] = UNSET,
        include_authorized_operations: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_ids = [] if group_ids is UNSET else group_ids
        self.include_authorized_operations = include_authorized_operations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupDescribeResponse(Message):
    """ShareGroupDescribeResponse, version 1: a response."""

    __slots__ = ("groups", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "groups")
    API_KEY = 77
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 1

    class DescribedGroup(Struct):
        __slots__ = (
            "assignment_epoch",
            "assignor_name",
            "authorized_operations",
            "error_code",
            "error_message",
            "group_epoch",
            "group_id",
            "group_state",
            "members",
        )
        FIELDS = (
            "error_code",
            "error_message",
            "group_id",
            "group_state",
            "group_epoch",
            "assignment_epoch",
            "assignor_name",
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
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = "",
            members: list[ShareGroupDescribeResponse.Member] = UNSET,
            authorized_operations: int = -2147483648,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.assignor_name = assignor_name
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Member(Struct):
        __slots__ = (
            "assignment",
            "client_host",
            "client_id",
            "member_epoch",
            "member_id",
            "rack_id",
            "subscribed_topic_names",
        )
        FIELDS = (
            "member_id",
            "rack_id",
            "member_epoch",
            "client_id",
            "client_host",
            "subscribed_topic_names",
            "assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: list[str] = UNSET,
            assignment: ShareGroupDescribeResponse.Assignment = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.rack_id = rack_id
            self.member_epoch = member_epoch
            self.client_id = client_id
            self.client_host = client_host
            self.subscribed_topic_names = (
                [] if subscribed_topic_names is UNSET else subscribed_topic_names
            )
            self.assignment = (
                ShareGroupDescribeResponse.Assignment() if assignment is UNSET else assignment
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Assignment(Struct):
        __slots__ = ("topic_partitions",)
        FIELDS = ("topic_partitions",)

        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicPartitions(Struct):
        __slots__ = ("partitions", "topic_id", "topic_name")
        FIELDS = ("topic_id", "topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            topic_name: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[ShareGroupDescribeResponse.DescribedGroup] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
