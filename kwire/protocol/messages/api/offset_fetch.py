"""Generated from `schema/api/offset_fetch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    """OffsetFetchRequest, versions 1-10: a request."""

    __slots__ = ("group_id", "groups", "require_stable", "topics")
    FIELDS = ("group_id", "topics", "groups", "require_stable")
    API_KEY = 9
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 10

    class OffsetFetchRequestTopic(Struct):
        __slots__ = ("name", "partition_indexes")
        FIELDS = ("name", "partition_indexes")

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchRequestGroup(Struct):
        __slots__ = ("group_id", "member_epoch", "member_id", "topics")
        FIELDS = ("group_id", "member_id", "member_epoch", "topics")

        def __init__(
            self,
            *,
            group_id: str = "",
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchRequestTopics(Struct):
        __slots__ = ("name", "partition_indexes", "topic_id")
        FIELDS = ("name", "topic_id", "partition_indexes")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partition_indexes: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = UNSET,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = UNSET,
        require_stable: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self.groups = [] if groups is UNSET else groups
        self.require_stable = require_stable
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetFetchResponse(Message):
    """OffsetFetchResponse, versions 1-10: a response."""

    __slots__ = ("error_code", "groups", "throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics", "error_code", "groups")
    API_KEY = 9
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 10

    class OffsetFetchResponseTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchResponsePartition(Struct):
        __slots__ = (
            "committed_leader_epoch",
            "committed_offset",
            "error_code",
            "metadata",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "metadata",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchResponseGroup(Struct):
        __slots__ = ("error_code", "group_id", "topics")
        FIELDS = ("group_id", "topics", "error_code")

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = UNSET,
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.topics = [] if topics is UNSET else topics
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchResponseTopics(Struct):
        __slots__ = ("name", "partitions", "topic_id")
        FIELDS = ("name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetFetchResponsePartitions(Struct):
        __slots__ = (
            "committed_leader_epoch",
            "committed_offset",
            "error_code",
            "metadata",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "metadata",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.metadata = metadata
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = UNSET,
        error_code: int = 0,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.error_code = error_code
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
