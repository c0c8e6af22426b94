"""Generated from `schema/api/describe_topic_partitions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"]):
    """DescribeTopicPartitionsRequest, version 0: a request."""

    __slots__ = ("cursor", "response_partition_limit", "topics")
    FIELDS = ("topics", "response_partition_limit", "cursor")
    API_KEY = 75
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicRequest(Struct):
        __slots__ = ("name",)
        FIELDS = ("name",)

        def __init__(
            self,
            *,
            name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Cursor(Struct):
        __slots__ = ("partition_index", "topic_name")
        FIELDS = ("topic_name", "partition_index")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = UNSET,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeTopicPartitionsResponse(Message):
    """DescribeTopicPartitionsResponse, version 0: a response."""

    __slots__ = ("next_cursor", "throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics", "next_cursor")
    API_KEY = 75
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DescribeTopicPartitionsResponseTopic(Struct):
        __slots__ = (
            "error_code",
            "is_internal",
            "name",
            "partitions",
            "topic_authorized_operations",
            "topic_id",
        )
        FIELDS = (
            "error_code",
            "name",
            "topic_id",
            "is_internal",
            "partitions",
            "topic_authorized_operations",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: bytes = ZERO,
            is_internal: bool = False,
            partitions: list[
                DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
            ] = UNSET,
            topic_authorized_operations: int = -2147483648,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.name = name
            self.topic_id = topic_id
            self.is_internal = is_internal
            self.partitions = [] if partitions is UNSET else partitions
            self.topic_authorized_operations = topic_authorized_operations
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeTopicPartitionsResponsePartition(Struct):
        __slots__ = (
            "eligible_leader_replicas",
            "error_code",
            "isr_nodes",
            "last_known_elr",
            "leader_epoch",
            "leader_id",
            "offline_replicas",
            "partition_index",
            "replica_nodes",
        )
        FIELDS = (
            "error_code",
            "partition_index",
            "leader_id",
            "leader_epoch",
            "replica_nodes",
            "isr_nodes",
            "eligible_leader_replicas",
            "last_known_elr",
            "offline_replicas",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = UNSET,
            isr_nodes: list[int] = UNSET,
            eligible_leader_replicas: list[int] | None = None,
            last_known_elr: list[int] | None = None,
            offline_replicas: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
            self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
            self.eligible_leader_replicas = eligible_leader_replicas
            self.last_known_elr = last_known_elr
            self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Cursor(Struct):
        __slots__ = ("partition_index", "topic_name")
        FIELDS = ("topic_name", "partition_index")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partition_index = partition_index
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = UNSET,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self.next_cursor = next_cursor
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
