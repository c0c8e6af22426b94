"""Generated from `schema/api/vote.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class VoteRequest(Request["VoteResponse"]):
    """VoteRequest, versions 0-2: a request."""

    __slots__ = ("cluster_id", "topics", "voter_id")
    FIELDS = ("cluster_id", "voter_id", "topics")
    API_KEY = 52
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "last_offset",
            "last_offset_epoch",
            "partition_index",
            "pre_vote",
            "replica_directory_id",
            "replica_epoch",
            "replica_id",
            "voter_directory_id",
        )
        FIELDS = (
            "partition_index",
            "replica_epoch",
            "replica_id",
            "replica_directory_id",
            "voter_directory_id",
            "last_offset_epoch",
            "last_offset",
            "pre_vote",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: bytes = ZERO,
            voter_directory_id: bytes = ZERO,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.replica_epoch = replica_epoch
            self.replica_id = replica_id
            self.replica_directory_id = replica_directory_id
            self.voter_directory_id = voter_directory_id
            self.last_offset_epoch = last_offset_epoch
            self.last_offset = last_offset
            self.pre_vote = pre_vote
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequest.TopicData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class VoteResponse(Message):
    """VoteResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "topics")
    FIELDS = ("error_code", "topics", "node_endpoints")
    API_KEY = 52
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("error_code", "leader_epoch", "leader_id", "partition_index", "vote_granted")
        FIELDS = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.vote_granted = vote_granted
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

    node_endpoints = Tagged["list[VoteResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponse.TopicData] = UNSET,
        node_endpoints: list[VoteResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
