"""Generated from `schema/api/begin_quorum_epoch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class BeginQuorumEpochRequest(Request["BeginQuorumEpochResponse"]):
    """BeginQuorumEpochRequest, versions 0-1: a request."""

    __slots__ = ("cluster_id", "leader_endpoints", "topics", "voter_id")
    FIELDS = ("cluster_id", "voter_id", "topics", "leader_endpoints")
    API_KEY = 53
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("leader_epoch", "leader_id", "partition_index", "voter_directory_id")
        FIELDS = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            voter_directory_id: bytes = ZERO,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.voter_directory_id = voter_directory_id
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class LeaderEndpoint(Struct):
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
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequest.TopicData] = UNSET,
        leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is UNSET else topics
        self.leader_endpoints = [] if leader_endpoints is UNSET else leader_endpoints
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class BeginQuorumEpochResponse(Message):
    """BeginQuorumEpochResponse, versions 0-1: a response."""

    __slots__ = ("error_code", "topics")
    FIELDS = ("error_code", "topics", "node_endpoints")
    API_KEY = 53
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("error_code", "leader_epoch", "leader_id", "partition_index")
        FIELDS = ("partition_index", "error_code", "leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class NodeEndpoint(Struct):
        __slots__ = ("host", "node_id", "port")
        FIELDS = ("node_id", "host", "port")

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    node_endpoints = Tagged["list[BeginQuorumEpochResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponse.TopicData] = UNSET,
        node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
