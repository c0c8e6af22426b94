"""Generated from `schema/api/list_config_resources.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    """ListConfigResourcesRequest, versions 0-1: a request."""

    __slots__ = ("resource_types",)
    FIELDS = ("resource_types",)
    API_KEY = 74
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        resource_types: list[int] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.resource_types = [] if resource_types is UNSET else resource_types
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ListConfigResourcesResponse(Message):
    """ListConfigResourcesResponse, versions 0-1: a response."""

    __slots__ = ("config_resources", "error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "config_resources")
    API_KEY = 74
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ConfigResource(Struct):
        __slots__ = ("resource_name", "resource_type")
        FIELDS = ("resource_name", "resource_type")

        def __init__(
            self,
            *,
            resource_name: str = "",
            resource_type: int = 16,
            unknown_tags: Tags = (),
        ) -> None:
            self.resource_name = resource_name
            self.resource_type = resource_type
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is UNSET else config_resources
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
