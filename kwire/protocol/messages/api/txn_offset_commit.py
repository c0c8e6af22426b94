"""Generated from `schema/api/txn_offset_commit.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"]):
    """TxnOffsetCommitRequest, versions 0-6: a request."""

    __slots__ = (
        "generation_id_or_member_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "producer_epoch",
        "producer_id",
        "topics",
        "transactional_id",
    )
    FIELDS = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "topics",
    )
    API_KEY = 28
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 6

    class TxnOffsetCommitRequestTopic(Struct):
        __slots__ = ("name", "partitions", "topic_id")
        FIELDS = ("name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TxnOffsetCommitRequestPartition(Struct):
        __slots__ = (
            "committed_leader_epoch",
            "committed_metadata",
            "committed_offset",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "committed_metadata",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.committed_offset = committed_offset
            self.committed_leader_epoch = committed_leader_epoch
            self.committed_metadata = committed_metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommitResponse, versions 0-6: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 28
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 6

    class TxnOffsetCommitResponseTopic(Struct):
        __slots__ = ("name", "partitions", "topic_id")
        FIELDS = ("name", "topic_id", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TxnOffsetCommitResponsePartition(Struct):
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
        topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
