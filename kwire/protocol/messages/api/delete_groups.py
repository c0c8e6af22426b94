"""Generated from `schema/api/delete_groups.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    """DeleteGroupsRequest, versions 0-3: a request."""

    __slots__ = ("groups_names",)
    FIELDS = ("groups_names",)
    API_KEY = 42
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 3

    def __init__(
        self,
        *,
        groups_names: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.groups_names = [] if groups_names is UNSET else groups_names
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteGroupsResponse(Message):
    """DeleteGroupsResponse, versions 0-3: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 42
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 3

    class DeletableGroupResult(Struct):
        __slots__ = ("error_code", "error_message", "group_id")
        FIELDS = ("group_id", "error_code", "error_message")

        def __init__(
            self,
            *,
            group_id: str = "",
            error_code: int = 0,
            error_message: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
