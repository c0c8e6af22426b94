"""Generated from `schema/api/alter_share_group_offsets.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"]):
    """AlterShareGroupOffsetsRequest, version 0: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 91
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class AlterShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[
                AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AlterShareGroupOffsetsRequestPartition(Struct):
        __slots__ = ("partition_index", "start_offset")
        FIELDS = ("partition_index", "start_offset")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.start_offset = start_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsResponse(Message):
    """AlterShareGroupOffsetsResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "responses", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY = 91
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class AlterShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("partitions", "topic_id", "topic_name")
        FIELDS = ("topic_name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[
                AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AlterShareGroupOffsetsResponsePartition(Struct):
        __slots__ = ("error_code", "error_message", "partition_index")
        FIELDS = ("partition_index", "error_code", "error_message")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
