"""Generated from `schema/api/describe_producers.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    """DescribeProducersRequest, version 0: a request."""

    __slots__ = ("topics",)
    FIELDS = ("topics",)
    API_KEY = 61
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicRequest(Struct):
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
        topics: list[DescribeProducersRequest.TopicRequest] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeProducersResponse(Message):
    """DescribeProducersResponse, version 0: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 61
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicResponse(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeProducersResponse.PartitionResponse] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionResponse(Struct):
        __slots__ = ("active_producers", "error_code", "error_message", "partition_index")
        FIELDS = ("partition_index", "error_code", "error_message", "active_producers")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: list[DescribeProducersResponse.ProducerState] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.active_producers = [] if active_producers is UNSET else active_producers
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ProducerState(Struct):
        __slots__ = (
            "coordinator_epoch",
            "current_txn_start_offset",
            "last_sequence",
            "last_timestamp",
            "producer_epoch",
            "producer_id",
        )
        FIELDS = (
            "producer_id",
            "producer_epoch",
            "last_sequence",
            "last_timestamp",
            "coordinator_epoch",
            "current_txn_start_offset",
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.last_sequence = last_sequence
            self.last_timestamp = last_timestamp
            self.coordinator_epoch = coordinator_epoch
            self.current_txn_start_offset = current_txn_start_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeProducersResponse.TopicResponse] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
