"""Generated from `schema/api/share_acknowledge.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"]):
    """ShareAcknowledgeRequest, versions 1-2: a request."""

    __slots__ = ("group_id", "is_renew_ack", "member_id", "share_session_epoch", "topics")
    FIELDS = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    API_KEY = 79
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 2

    class AcknowledgeTopic(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AcknowledgePartition(Struct):
        __slots__ = ("acknowledgement_batches", "partition_index")
        FIELDS = ("partition_index", "acknowledgement_batches")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = UNSET,
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

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareAcknowledgeResponse(Message):
    """ShareAcknowledgeResponse, versions 1-2: a response."""

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
    API_KEY = 79
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 2

    class ShareAcknowledgeTopicResponse(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ShareAcknowledgeResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("current_leader", "error_code", "error_message", "partition_index")
        FIELDS = ("partition_index", "error_code", "error_message", "current_leader")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.current_leader = (
                ShareAcknowledgeResponse.LeaderIdAndEpoch()
                if current_leader is UNSET
                else current_leader
            )
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
        responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = UNSET,
        node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = UNSET,
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
