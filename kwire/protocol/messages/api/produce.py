"""Generated from `schema/api/produce.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Records, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class ProduceRequest(Request["ProduceResponse"]):
    """ProduceRequest, versions 3-13: a request."""

    __slots__ = ("acks", "timeout_ms", "topic_data", "transactional_id")
    FIELDS = ("transactional_id", "acks", "timeout_ms", "topic_data")
    API_KEY = 0
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 3, 13

    class TopicProduceData(Struct):
        __slots__ = ("name", "partition_data", "topic_id")
        FIELDS = ("name", "topic_id", "partition_data")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partition_data: list[ProduceRequest.PartitionProduceData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_data = [] if partition_data is UNSET else partition_data
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionProduceData(Struct):
        __slots__ = ("index", "records")
        FIELDS = ("index", "records")

        def __init__(
            self,
            *,
            index: int = 0,
            records: Records | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.index = index
            self.records = records
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[ProduceRequest.TopicProduceData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is UNSET else topic_data
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ProduceResponse(Message):
    """ProduceResponse, versions 3-13: a response."""

    __slots__ = ("responses", "throttle_time_ms")
    FIELDS = ("responses", "throttle_time_ms", "node_endpoints")
    API_KEY = 0
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 3, 13

    class TopicProduceResponse(Struct):
        __slots__ = ("name", "partition_responses", "topic_id")
        FIELDS = ("name", "topic_id", "partition_responses")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partition_responses = [] if partition_responses is UNSET else partition_responses
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionProduceResponse(Struct):
        __slots__ = (
            "base_offset",
            "error_code",
            "error_message",
            "index",
            "log_append_time_ms",
            "log_start_offset",
            "record_errors",
        )
        FIELDS = (
            "index",
            "error_code",
            "base_offset",
            "log_append_time_ms",
            "log_start_offset",
            "record_errors",
            "error_message",
            "current_leader",
        )

        current_leader = Tagged["ProduceResponse.LeaderIdAndEpoch"](
            maker=lambda: ProduceResponse.LeaderIdAndEpoch()
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = UNSET,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.log_start_offset = log_start_offset
            self.record_errors = [] if record_errors is UNSET else record_errors
            self.error_message = error_message
            self._tagged = None
            if current_leader is not UNSET:
                self.current_leader = current_leader
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class BatchIndexAndErrorMessage(Struct):
        __slots__ = ("batch_index", "batch_index_error_message")
        FIELDS = ("batch_index", "batch_index_error_message")

        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.batch_index = batch_index
            self.batch_index_error_message = batch_index_error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_epoch", "leader_id")
        FIELDS = ("leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class NodeEndpoint(Struct):
        __slots__ = ("host", "node_id", "port", "rack")
        FIELDS = ("node_id", "host", "port", "rack")

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.rack = rack
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    node_endpoints = Tagged["list[ProduceResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = UNSET,
        throttle_time_ms: int = 0,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.responses = [] if responses is UNSET else responses
        self.throttle_time_ms = throttle_time_ms
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
