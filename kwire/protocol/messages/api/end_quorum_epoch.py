"""Generated from `schema/api/end_quorum_epoch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class EndQuorumEpochRequest(Request["EndQuorumEpochResponse"]):
    """EndQuorumEpochRequest, versions 0-1: a request."""

    __slots__ = ("cluster_id", "leader_endpoints", "topics")
    FIELDS = ("cluster_id", "topics", "leader_endpoints")
    API_KEY = 54
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "leader_epoch",
            "leader_id",
            "partition_index",
            "preferred_candidates",
            "preferred_successors",
        )
        FIELDS = (
            "partition_index",
            "leader_id",
            "leader_epoch",
            "preferred_successors",
            "preferred_candidates",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            preferred_successors: list[int] = UNSET,
            preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.preferred_successors = (
                [] if preferred_successors is UNSET else preferred_successors
            )
            self.preferred_candidates = (
                [] if preferred_candidates is UNSET else preferred_candidates
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ReplicaInfo(Struct):
        __slots__ = ("candidate_directory_id", "candidate_id")
        FIELDS = ("candidate_id", "candidate_directory_id")

        def __init__(
            self,
            *,
            candidate_id: int = 0,
            candidate_directory_id: bytes = ZERO,
            unknown_tags: Tags = (),
        ) -> None:
            self.candidate_id = candidate_id
            self.candidate_directory_id = candidate_directory_id
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
        topics: list[EndQuorumEpochRequest.TopicData] = UNSET,
        leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is UNSET else topics
        self.leader_endpoints = [] if leader_endpoints is UNSET else leader_endpoints
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class EndQuorumEpochResponse(Message):
    """EndQuorumEpochResponse, versions 0-1: a response."""

    __slots__ = ("error_code", "topics")
    FIELDS = ("error_code", "topics", "node_endpoints")
    API_KEY = 54
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochResponse.PartitionData] = UNSET,
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

    node_endpoints = Tagged["list[EndQuorumEpochResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponse.TopicData] = UNSET,
        node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
