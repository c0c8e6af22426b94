"""Generated from `schema/api/describe_quorum.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    """DescribeQuorumRequest, versions 0-2: a request."""

    __slots__ = ("topics",)
    FIELDS = ("topics",)
    API_KEY = 55
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("partition_index",)
        FIELDS = ("partition_index",)

        def __init__(
            self,
            *,
            partition_index: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequest.TopicData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeQuorumResponse(Message):
    """DescribeQuorumResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "error_message", "nodes", "topics")
    FIELDS = ("error_code", "error_message", "topics", "nodes")
    API_KEY = 55
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "current_voters",
            "error_code",
            "error_message",
            "high_watermark",
            "leader_epoch",
            "leader_id",
            "observers",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "error_code",
            "error_message",
            "leader_id",
            "leader_epoch",
            "high_watermark",
            "current_voters",
            "observers",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = UNSET,
            observers: list[DescribeQuorumResponse.ReplicaState] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.error_message = error_message
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.high_watermark = high_watermark
            self.current_voters = [] if current_voters is UNSET else current_voters
            self.observers = [] if observers is UNSET else observers
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ReplicaState(Struct):
        __slots__ = (
            "last_caught_up_timestamp",
            "last_fetch_timestamp",
            "log_end_offset",
            "replica_directory_id",
            "replica_id",
        )
        FIELDS = (
            "replica_id",
            "replica_directory_id",
            "log_end_offset",
            "last_fetch_timestamp",
            "last_caught_up_timestamp",
        )

        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: bytes = ZERO,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.log_end_offset = log_end_offset
            self.last_fetch_timestamp = last_fetch_timestamp
            self.last_caught_up_timestamp = last_caught_up_timestamp
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Node(Struct):
        __slots__ = ("listeners", "node_id")
        FIELDS = ("node_id", "listeners")

        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: list[DescribeQuorumResponse.Listener] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.node_id = node_id
            self.listeners = [] if listeners is UNSET else listeners
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Listener(Struct):
        __slots__ = ("host", "name", "port")
        FIELDS = ("name", "host", "port")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponse.TopicData] = UNSET,
        nodes: list[DescribeQuorumResponse.Node] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is UNSET else topics
        self.nodes = [] if nodes is UNSET else nodes
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
