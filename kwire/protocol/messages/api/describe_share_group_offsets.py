"""Generated from `schema/api/describe_share_group_offsets.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DescribeShareGroupOffsetsRequest(Request["DescribeShareGroupOffsetsResponse"]):
    """DescribeShareGroupOffsetsRequest, versions 0-1: a request."""

    __slots__ = ("groups",)
    FIELDS = ("groups",)
    API_KEY = 90
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        __slots__ = ("group_id", "topics")
        FIELDS = ("group_id", "topics")

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic]
            | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        groups: list[
            DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponse(Message):
    """DescribeShareGroupOffsetsResponse, versions 0-1: a response."""

    __slots__ = ("groups", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "groups")
    API_KEY = 90
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        __slots__ = ("error_code", "error_message", "group_id", "topics")
        FIELDS = ("group_id", "topics", "error_code", "error_message")

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[
                DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
            ] = UNSET,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("partitions", "topic_id", "topic_name")
        FIELDS = ("topic_name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[
                DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "lag",
            "leader_epoch",
            "partition_index",
            "start_offset",
        )
        FIELDS = (
            "partition_index",
            "start_offset",
            "leader_epoch",
            "lag",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            leader_epoch: int = 0,
            lag: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self.leader_epoch = leader_epoch
            self.lag = lag
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
