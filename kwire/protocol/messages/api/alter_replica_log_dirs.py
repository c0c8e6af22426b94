"""Generated from `schema/api/alter_replica_log_dirs.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    """AlterReplicaLogDirsRequest, versions 1-2: a request."""

    __slots__ = ("dirs",)
    FIELDS = ("dirs",)
    API_KEY = 34
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 2

    class AlterReplicaLogDir(Struct):
        __slots__ = ("path", "topics")
        FIELDS = ("path", "topics")

        def __init__(
            self,
            *,
            path: str = "",
            topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.path = path
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AlterReplicaLogDirTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.dirs = [] if dirs is UNSET else dirs
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirsResponse, versions 1-2: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 34
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 2

    class AlterReplicaLogDirTopicResult(Struct):
        __slots__ = ("partitions", "topic_name")
        FIELDS = ("topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AlterReplicaLogDirPartitionResult(Struct):
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
        results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
