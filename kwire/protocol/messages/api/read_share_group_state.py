"""Generated from `schema/api/read_share_group_state.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"]):
    """ReadShareGroupStateRequest, version 0: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 84
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ReadStateData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ReadShareGroupStateRequest.PartitionData] = UNSET,
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
        topics: list[ReadShareGroupStateRequest.ReadStateData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ReadShareGroupStateResponse(Message):
    """ReadShareGroupStateResponse, version 0: a response."""

    __slots__ = ("results",)
    FIELDS = ("results",)
    API_KEY = 84
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ReadStateResult(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[ReadShareGroupStateResponse.PartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionResult(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "partition",
            "start_offset",
            "state_batches",
            "state_epoch",
        )
        FIELDS = (
            "partition",
            "error_code",
            "error_message",
            "state_epoch",
            "start_offset",
            "state_batches",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            start_offset: int = 0,
            state_batches: list[ReadShareGroupStateResponse.StateBatch] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self.state_epoch = state_epoch
            self.start_offset = start_offset
            self.state_batches = [] if state_batches is UNSET else state_batches
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class StateBatch(Struct):
        __slots__ = ("delivery_count", "delivery_state", "first_offset", "last_offset")
        FIELDS = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateResponse.ReadStateResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
