"""Generated from `schema/api/share_fetch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Records, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ShareFetchRequest(Request["ShareFetchResponse"]):
    """ShareFetchRequest, versions 1-2: a request."""

    __slots__ = (
        "batch_size",
        "forgotten_topics_data",
        "group_id",
        "is_renew_ack",
        "max_bytes",
        "max_records",
        "max_wait_ms",
        "member_id",
        "min_bytes",
        "share_acquire_mode",
        "share_session_epoch",
        "topics",
    )
    FIELDS = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    API_KEY = 78
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 2

    class FetchTopic(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ShareFetchRequest.FetchPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class FetchPartition(Struct):
        __slots__ = ("acknowledgement_batches", "partition_index")
        FIELDS = ("partition_index", "acknowledgement_batches")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.acknowledgement_batches = (
                [] if acknowledgement_batches is UNSET else acknowledgement_batches
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AcknowledgementBatch(Struct):
        __slots__ = ("acknowledge_types", "first_offset", "last_offset")
        FIELDS = ("first_offset", "last_offset", "acknowledge_types")

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.acknowledge_types = [] if acknowledge_types is UNSET else acknowledge_types
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ForgottenTopic(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareFetchRequest.FetchTopic] = UNSET,
        forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is UNSET else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is UNSET else forgotten_topics_data
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareFetchResponse(Message):
    """ShareFetchResponse, versions 1-2: a response."""

    __slots__ = (
        "acquisition_lock_timeout_ms",
        "error_code",
        "error_message",
        "node_endpoints",
        "responses",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    API_KEY = 78
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 2

    class ShareFetchableTopicResponse(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ShareFetchResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "acknowledge_error_code",
            "acknowledge_error_message",
            "acquired_records",
            "current_leader",
            "error_code",
            "error_message",
            "partition_index",
            "records",
        )
        FIELDS = (
            "partition_index",
            "error_code",
            "error_message",
            "acknowledge_error_code",
            "acknowledge_error_message",
            "current_leader",
            "records",
            "acquired_records",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            acknowledge_error_code: int = 0,
            acknowledge_error_message: str | None = None,
            current_leader: ShareFetchResponse.LeaderIdAndEpoch = UNSET,
            records: Records = b"",
            acquired_records: list[ShareFetchResponse.AcquiredRecords] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.acknowledge_error_code = acknowledge_error_code
            self.acknowledge_error_message = acknowledge_error_message
            self.current_leader = (
                ShareFetchResponse.LeaderIdAndEpoch() if current_leader is UNSET else current_leader
            )
            self.records = records
            self.acquired_records = [] if acquired_records is UNSET else acquired_records
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_epoch", "leader_id")
        FIELDS = ("leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AcquiredRecords(Struct):
        __slots__ = ("delivery_count", "first_offset", "last_offset")
        FIELDS = ("first_offset", "last_offset", "delivery_count")

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_count: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_count = delivery_count
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

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = UNSET,
        node_endpoints: list[ShareFetchResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is UNSET else responses
        self.node_endpoints = [] if node_endpoints is UNSET else node_endpoints
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
