"""Generated from `schema/api/incremental_alter_configs.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"]):
    """IncrementalAlterConfigsRequest, versions 0-1: a request."""

    __slots__ = ("resources", "validate_only")
    FIELDS = ("resources", "validate_only")
    API_KEY = 44
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class AlterConfigsResource(Struct):
        __slots__ = ("configs", "resource_name", "resource_type")
        FIELDS = ("resource_type", "resource_name", "configs")

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is UNSET else configs
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AlterableConfig(Struct):
        __slots__ = ("config_operation", "name", "value")
        FIELDS = ("name", "config_operation", "value")

        def __init__(
            self,
            *,
            name: str = "",
            config_operation: int = 0,
            value: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.config_operation = config_operation
            self.value = value
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = UNSET,
        validate_only: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.validate_only = validate_only
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class IncrementalAlterConfigsResponse(Message):
    """IncrementalAlterConfigsResponse, versions 0-1: a response."""

    __slots__ = ("responses", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "responses")
    API_KEY = 44
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class AlterConfigsResourceResponse(Struct):
        __slots__ = ("error_code", "error_message", "resource_name", "resource_type")
        FIELDS = ("error_code", "error_message", "resource_type", "resource_name")

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
