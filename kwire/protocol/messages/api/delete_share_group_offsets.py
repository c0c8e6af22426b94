"""Generated from `schema/api/delete_share_group_offsets.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DeleteShareGroupOffsetsRequest(Request["DeleteShareGroupOffsetsResponse"]):
    """DeleteShareGroupOffsetsRequest, version 0: a request."""

    __slots__ = ("group_id", "topics")
    FIELDS = ("group_id", "topics")
    API_KEY = 92
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        __slots__ = ("topic_name",)
        FIELDS = ("topic_name",)

        def __init__(
            self,
            *,
            topic_name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteShareGroupOffsetsResponse(Message):
    """DeleteShareGroupOffsetsResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "responses", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY = 92
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        __slots__ = ("error_code", "error_message", "topic_id", "topic_name")
        FIELDS = ("topic_name", "topic_id", "error_code", "error_message")

        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ZERO,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_name = topic_name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[
            DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
