"""Generated from `schema/api/metadata.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class MetadataRequest(Request["MetadataResponse"]):
    """MetadataRequest, versions 0-13: a request."""

    __slots__ = (
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "topics",
    )
    FIELDS = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    API_KEY = 3
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 13

    class MetadataRequestTopic(Struct):
        __slots__ = ("name", "topic_id")
        FIELDS = ("topic_id", "name")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            name: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.name = name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = UNSET,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class MetadataResponse(Message):
    """MetadataResponse, versions 0-13: a response."""

    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    FIELDS = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    API_KEY = 3
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 13

    class MetadataResponseBroker(Struct):
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

    class MetadataResponseTopic(Struct):
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
            partitions: list[MetadataResponse.MetadataResponsePartition] = UNSET,
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

    class MetadataResponsePartition(Struct):
        __slots__ = (
            "error_code",
            "isr_nodes",
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
            offline_replicas: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.replica_nodes = [] if replica_nodes is UNSET else replica_nodes
            self.isr_nodes = [] if isr_nodes is UNSET else isr_nodes
            self.offline_replicas = [] if offline_replicas is UNSET else offline_replicas
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponse.MetadataResponseBroker] = UNSET,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponse.MetadataResponseTopic] = UNSET,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is UNSET else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
