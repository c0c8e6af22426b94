"""Generated from `schema/api/list_partition_reassignments.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ListPartitionReassignmentsRequest(Request["ListPartitionReassignmentsResponse"]):
    """ListPartitionReassignmentsRequest, version 0: a request."""

    __slots__ = ("timeout_ms", "topics")
    FIELDS = ("timeout_ms", "topics")
    API_KEY = 46
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ListPartitionReassignmentsTopics(Struct):
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

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics]
        | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ListPartitionReassignmentsResponse(Message):
    """ListPartitionReassignmentsResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "topics")
    API_KEY = 46
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class OngoingTopicReassignment(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[
                ListPartitionReassignmentsResponse.OngoingPartitionReassignment
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OngoingPartitionReassignment(Struct):
        __slots__ = ("adding_replicas", "partition_index", "removing_replicas", "replicas")
        FIELDS = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] = UNSET,
            adding_replicas: list[int] = UNSET,
            removing_replicas: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.replicas = [] if replicas is UNSET else replicas
            self.adding_replicas = [] if adding_replicas is UNSET else adding_replicas
            self.removing_replicas = [] if removing_replicas is UNSET else removing_replicas
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
