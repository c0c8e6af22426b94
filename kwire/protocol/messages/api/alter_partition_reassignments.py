"""Generated from `schema/api/alter_partition_reassignments.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    """AlterPartitionReassignmentsRequest, versions 0-1: a request."""

    __slots__ = ("allow_replication_factor_change", "timeout_ms", "topics")
    FIELDS = ("timeout_ms", "allow_replication_factor_change", "topics")
    API_KEY = 45
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ReassignableTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ReassignablePartition(Struct):
        __slots__ = ("partition_index", "replicas")
        FIELDS = ("partition_index", "replicas")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.replicas = replicas
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignmentsResponse, versions 0-1: a response."""

    __slots__ = (
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )
    API_KEY = 45
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ReassignableTopicResponse(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[
                AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ReassignablePartitionResponse(Struct):
        __slots__ = ("error_code", "error_message", "partition_index")
        FIELDS = ("partition_index", "error_code", "error_message")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
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
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
