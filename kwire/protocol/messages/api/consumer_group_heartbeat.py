"""Generated from `schema/api/consumer_group_heartbeat.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    """ConsumerGroupHeartbeatRequest, versions 0-1: a request."""

    __slots__ = (
        "group_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "topic_partitions",
    )
    FIELDS = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    API_KEY = 68
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

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
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupHeartbeatResponse(Message):
    """ConsumerGroupHeartbeatResponse, versions 0-1: a response."""

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
    API_KEY = 68
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Assignment(Struct):
        __slots__ = ("topic_partitions",)
        FIELDS = ("topic_partitions",)

        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = UNSET,
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
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None,
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
