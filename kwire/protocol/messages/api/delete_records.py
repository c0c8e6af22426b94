"""Generated from `schema/api/delete_records.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    """DeleteRecordsRequest, versions 0-2: a request."""

    __slots__ = ("timeout_ms", "topics")
    FIELDS = ("topics", "timeout_ms")
    API_KEY = 21
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    class DeleteRecordsTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DeleteRecordsPartition(Struct):
        __slots__ = ("offset", "partition_index")
        FIELDS = ("partition_index", "offset")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.offset = offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = UNSET,
        timeout_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteRecordsResponse(Message):
    """DeleteRecordsResponse, versions 0-2: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 21
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class DeleteRecordsTopicResult(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DeleteRecordsPartitionResult(Struct):
        __slots__ = ("error_code", "low_watermark", "partition_index")
        FIELDS = ("partition_index", "low_watermark", "error_code")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.low_watermark = low_watermark
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
