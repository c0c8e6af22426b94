"""Generated from `schema/api/list_groups.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ListGroupsRequest(Request["ListGroupsResponse"]):
    """ListGroupsRequest, versions 0-5: a request."""

    __slots__ = ("states_filter", "types_filter")
    FIELDS = ("states_filter", "types_filter")
    API_KEY = 16
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    def __init__(
        self,
        *,
        states_filter: list[str] = UNSET,
        types_filter: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.states_filter = [] if states_filter is UNSET else states_filter
        self.types_filter = [] if types_filter is UNSET else types_filter
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ListGroupsResponse(Message):
    """ListGroupsResponse, versions 0-5: a response."""

    __slots__ = ("error_code", "groups", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "groups")
    API_KEY = 16
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    class ListedGroup(Struct):
        __slots__ = ("group_id", "group_state", "group_type", "protocol_type")
        FIELDS = ("group_id", "protocol_type", "group_state", "group_type")

        def __init__(
            self,
            *,
            group_id: str = "",
            protocol_type: str = "",
            group_state: str = "",
            group_type: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.group_id = group_id
            self.protocol_type = protocol_type
            self.group_state = group_state
            self.group_type = group_type
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListGroupsResponse.ListedGroup] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
