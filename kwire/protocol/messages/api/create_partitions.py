"""Generated from `schema/api/create_partitions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    """CreatePartitionsRequest, versions 0-3: a request."""

    __slots__ = ("timeout_ms", "topics", "validate_only")
    FIELDS = ("topics", "timeout_ms", "validate_only")
    API_KEY = 37
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 3

    class CreatePartitionsTopic(Struct):
        __slots__ = ("assignments", "count", "name")
        FIELDS = ("name", "count", "assignments")

        def __init__(
            self,
            *,
            name: str = "",
            count: int = 0,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.count = count
            self.assignments = [] if assignments is UNSET else assignments
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CreatePartitionsAssignment(Struct):
        __slots__ = ("broker_ids",)
        FIELDS = ("broker_ids",)

        def __init__(
            self,
            *,
            broker_ids: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.broker_ids = [] if broker_ids is UNSET else broker_ids
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = UNSET,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class CreatePartitionsResponse(Message):
    """CreatePartitionsResponse, versions 0-3: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 37
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 3

    class CreatePartitionsTopicResult(Struct):
        __slots__ = ("error_code", "error_message", "name")
        FIELDS = ("name", "error_code", "error_message")

        def __init__(
            self,
            *,
            name: str = "",
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
