"""Generated from `schema/api/offset_for_leader_epoch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    """OffsetForLeaderEpochRequest, versions 2-4: a request."""

    __slots__ = ("replica_id", "topics")
    FIELDS = ("replica_id", "topics")
    API_KEY = 23
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 2, 4

    class OffsetForLeaderTopic(Struct):
        __slots__ = ("partitions", "topic")
        FIELDS = ("topic", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class OffsetForLeaderPartition(Struct):
        __slots__ = ("current_leader_epoch", "leader_epoch", "partition")
        FIELDS = ("partition", "current_leader_epoch", "leader_epoch")

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpochResponse, versions 2-4: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 23
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 2, 4

    class OffsetForLeaderTopicResult(Struct):
        __slots__ = ("partitions", "topic")
        FIELDS = ("topic", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class EpochEndOffset(Struct):
        __slots__ = ("end_offset", "error_code", "leader_epoch", "partition")
        FIELDS = ("error_code", "partition", "leader_epoch", "end_offset")

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.partition = partition
            self.leader_epoch = leader_epoch
            self.end_offset = end_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
