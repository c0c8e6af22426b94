"""Generated from `schema/api/share_group_heartbeat.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ShareGroupHeartbeatRequest(Request["ShareGroupHeartbeatResponse"]):
    """ShareGroupHeartbeatRequest, version 1: a request."""

    __slots__ = ("group_id", "member_epoch", "member_id", "rack_id", "subscribed_topic_names")
    FIELDS = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    API_KEY = 76
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 1

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupHeartbeatResponse(Message):
    """ShareGroupHeartbeatResponse, version 1: a response."""

    __slots__ = (
        "assignment",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY = 76
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 1

    class Assignment(Struct):
        __slots__ = ("topic_partitions",)
        FIELDS = ("topic_partitions",)

        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicPartitions(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ShareGroupHeartbeatResponse.Assignment | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
