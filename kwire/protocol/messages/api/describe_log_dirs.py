"""Generated from `schema/api/describe_log_dirs.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    """DescribeLogDirsRequest, versions 1-5: a request."""

    __slots__ = ("topics",)
    FIELDS = ("topics",)
    API_KEY = 35
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 5

    class DescribableLogDirTopic(Struct):
        __slots__ = ("partitions", "topic")
        FIELDS = ("topic", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeLogDirsResponse(Message):
    """DescribeLogDirsResponse, versions 1-5: a response."""

    __slots__ = ("error_code", "results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "results")
    API_KEY = 35
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 5

    class DescribeLogDirsResult(Struct):
        __slots__ = (
            "error_code",
            "is_cordoned",
            "log_dir",
            "topics",
            "total_bytes",
            "usable_bytes",
        )
        FIELDS = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = "",
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = UNSET,
            total_bytes: int = -1,
            usable_bytes: int = -1,
            is_cordoned: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.log_dir = log_dir
            self.topics = [] if topics is UNSET else topics
            self.total_bytes = total_bytes
            self.usable_bytes = usable_bytes
            self.is_cordoned = is_cordoned
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeLogDirsTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeLogDirsPartition(Struct):
        __slots__ = ("is_future_key", "offset_lag", "partition_index", "partition_size")
        FIELDS = ("partition_index", "partition_size", "offset_lag", "is_future_key")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.partition_size = partition_size
            self.offset_lag = offset_lag
            self.is_future_key = is_future_key
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
