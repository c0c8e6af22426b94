"""Generated from `schema/api/assign_replicas_to_dirs.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class AssignReplicasToDirsRequest(Request["AssignReplicasToDirsResponse"]):
    """AssignReplicasToDirsRequest, version 0: a request."""

    __slots__ = ("broker_epoch", "broker_id", "directories")
    FIELDS = ("broker_id", "broker_epoch", "directories")
    API_KEY = 73
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DirectoryData(Struct):
        __slots__ = ("id", "topics")
        FIELDS = ("id", "topics")

        def __init__(
            self,
            *,
            id: bytes = ZERO,
            topics: list[AssignReplicasToDirsRequest.TopicData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.id = id
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
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
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.directories = [] if directories is UNSET else directories
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AssignReplicasToDirsResponse(Message):
    """AssignReplicasToDirsResponse, version 0: a response."""

    __slots__ = ("directories", "error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "directories")
    API_KEY = 73
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DirectoryData(Struct):
        __slots__ = ("id", "topics")
        FIELDS = ("id", "topics")

        def __init__(
            self,
            *,
            id: bytes = ZERO,
            topics: list[AssignReplicasToDirsResponse.TopicData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.id = id
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("error_code", "partition_index")
        FIELDS = ("partition_index", "error_code")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.directories = [] if directories is UNSET else directories
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
