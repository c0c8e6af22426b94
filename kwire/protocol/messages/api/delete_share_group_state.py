"""Generated from `schema/api/delete_share_group_state.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DeleteShareGroupStateRequest(Request["DeleteShareGroupStateResponse"]):
    """DeleteShareGroupStateRequest, version 0: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 86
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DeleteStateData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[DeleteShareGroupStateRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = ("partition",)
        FIELDS = ("partition",)

        def __init__(
            self,
            *,
            partition: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupStateRequest.DeleteStateData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteShareGroupStateResponse(Message):
    """DeleteShareGroupStateResponse, version 0: a response."""

    __slots__ = ("results",)
    FIELDS = ("results",)
    API_KEY = 86
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DeleteStateResult(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[DeleteShareGroupStateResponse.PartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionResult(Struct):
        __slots__ = ("error_code", "error_message", "partition")
        FIELDS = ("partition", "error_code", "error_message")

        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        results: list[DeleteShareGroupStateResponse.DeleteStateResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
