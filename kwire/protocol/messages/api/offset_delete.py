"""Generated from `schema/api/offset_delete.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    """OffsetDeleteRequest, version 0: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 47
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class OffsetDeleteRequestTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetDeleteRequestPartition(Struct):
        __slots__ = ("partition_index",)
        FIELDS = ("partition_index",)

        def __init__(
            self,
            *,
            partition_index: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetDeleteResponse(Message):
    """OffsetDeleteResponse, version 0: a response."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    FIELDS = ("error_code", "throttle_time_ms", "topics")
    API_KEY = 47
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class OffsetDeleteResponseTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetDeleteResponsePartition(Struct):
        __slots__ = ("error_code", "partition_index")
        FIELDS = ("partition_index", "error_code")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
