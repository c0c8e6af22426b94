"""Generated from `schema/api/list_offsets.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    """ListOffsetsRequest, versions 1-11: a request."""

    __slots__ = ("isolation_level", "replica_id", "timeout_ms", "topics")
    FIELDS = ("replica_id", "isolation_level", "topics", "timeout_ms")
    API_KEY = 2
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 11

    class ListOffsetsTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ListOffsetsPartition(Struct):
        __slots__ = ("current_leader_epoch", "partition_index", "timestamp")
        FIELDS = ("partition_index", "current_leader_epoch", "timestamp")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.current_leader_epoch = current_leader_epoch
            self.timestamp = timestamp
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = UNSET,
        timeout_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ListOffsetsResponse(Message):
    """ListOffsetsResponse, versions 1-11: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 2
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 11

    class ListOffsetsTopicResponse(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ListOffsetsPartitionResponse(Struct):
        __slots__ = ("error_code", "leader_epoch", "offset", "partition_index", "timestamp")
        FIELDS = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.timestamp = timestamp
            self.offset = offset
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
