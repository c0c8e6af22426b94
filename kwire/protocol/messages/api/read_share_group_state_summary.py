"""Generated from `schema/api/read_share_group_state_summary.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ReadShareGroupStateSummaryRequest(Request["ReadShareGroupStateSummaryResponse"]):
    """ReadShareGroupStateSummaryRequest, versions 0-1: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 87
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ReadStateSummaryData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("leader_epoch", "partition")
        FIELDS = ("partition", "leader_epoch")

        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ReadShareGroupStateSummaryResponse(Message):
    """ReadShareGroupStateSummaryResponse, versions 0-1: a response."""

    __slots__ = ("results",)
    FIELDS = ("results",)
    API_KEY = 87
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ReadStateSummaryResult(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionResult(Struct):
        __slots__ = (
            "delivery_complete_count",
            "error_code",
            "error_message",
            "leader_epoch",
            "partition",
            "start_offset",
            "state_epoch",
        )
        FIELDS = (
            "partition",
            "error_code",
            "error_message",
            "state_epoch",
            "leader_epoch",
            "start_offset",
            "delivery_complete_count",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.state_epoch = state_epoch
            self.leader_epoch = leader_epoch
            self.start_offset = start_offset
            self.delivery_complete_count = delivery_complete_count
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
