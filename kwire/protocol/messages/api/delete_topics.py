"""Generated from `schema/api/delete_topics.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    """DeleteTopicsRequest, versions 1-6: a request."""

    __slots__ = ("timeout_ms", "topic_names", "topics")
    FIELDS = ("topics", "topic_names", "timeout_ms")
    API_KEY = 20
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 6

    class DeleteTopicState(Struct):
        __slots__ = ("name", "topic_id")
        FIELDS = ("name", "topic_id")

        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: bytes = ZERO,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = UNSET,
        topic_names: list[str] = UNSET,
        timeout_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.topic_names = [] if topic_names is UNSET else topic_names
        self.timeout_ms = timeout_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteTopicsResponse(Message):
    """DeleteTopicsResponse, versions 1-6: a response."""

    __slots__ = ("responses", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "responses")
    API_KEY = 20
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 6

    class DeletableTopicResult(Struct):
        __slots__ = ("error_code", "error_message", "name", "topic_id")
        FIELDS = ("name", "topic_id", "error_code", "error_message")

        def __init__(
            self,
            *,
            name: str | None = "",
            topic_id: bytes = ZERO,
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
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
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
