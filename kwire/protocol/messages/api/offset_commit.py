"""Generated from `schema/api/offset_commit.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    """OffsetCommitRequest, versions 2-10: a request."""

    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "retention_time_ms",
        "topics",
    )
    FIELDS = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )
    API_KEY = 8
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 2, 10

    class OffsetCommitRequestTopic(Struct):
        __slots__ = ("name", "partitions", "topic_id")
        FIELDS = ("name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetCommitRequestPartition(Struct):
        __slots__ = (
            "committed_leader_epoch",
            "committed_metadata",
            "committed_offset",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "committed_metadata",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.committed_metadata = committed_metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetCommitResponse(Message):
    """OffsetCommitResponse, versions 2-10: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 8
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 2, 10

    class OffsetCommitResponseTopic(Struct):
        __slots__ = ("name", "partitions", "topic_id")
        FIELDS = ("name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetCommitResponsePartition(Struct):
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
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
