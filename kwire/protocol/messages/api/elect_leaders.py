"""Generated from `schema/api/elect_leaders.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    """ElectLeadersRequest, versions 0-2: a request."""

    __slots__ = ("election_type", "timeout_ms", "topic_partitions")
    FIELDS = ("election_type", "topic_partitions", "timeout_ms")
    API_KEY = 43
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TopicPartitions(Struct):
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
        election_type: int = 0,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = UNSET,
        timeout_ms: int = 60000,
        unknown_tags: Tags = (),
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self.timeout_ms = timeout_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ElectLeadersResponse(Message):
    """ElectLeadersResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "replica_election_results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "replica_election_results")
    API_KEY = 43
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class ReplicaElectionResult(Struct):
        __slots__ = ("partition_result", "topic")
        FIELDS = ("topic", "partition_result")

        def __init__(
            self,
            *,
            topic: str = "",
            partition_result: list[ElectLeadersResponse.PartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partition_result = [] if partition_result is UNSET else partition_result
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionResult(Struct):
        __slots__ = ("error_code", "error_message", "partition_id")
        FIELDS = ("partition_id", "error_code", "error_message")

        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_id = partition_id
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
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = (
            [] if replica_election_results is UNSET else replica_election_results
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
