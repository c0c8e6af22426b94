"""Generated from `schema/api/describe_configs.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    """DescribeConfigsRequest, versions 1-4: a request."""

    __slots__ = ("include_documentation", "include_synonyms", "resources")
    FIELDS = ("resources", "include_synonyms", "include_documentation")
    API_KEY = 32
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 4

    class DescribeConfigsResource(Struct):
        __slots__ = ("configuration_keys", "resource_name", "resource_type")
        FIELDS = ("resource_type", "resource_name", "configuration_keys")

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configuration_keys: list[str] | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configuration_keys = [] if configuration_keys is UNSET else configuration_keys
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = UNSET,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.resources = [] if resources is UNSET else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeConfigsResponse(Message):
    """DescribeConfigsResponse, versions 1-4: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 32
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 4

    class DescribeConfigsResult(Struct):
        __slots__ = ("configs", "error_code", "error_message", "resource_name", "resource_type")
        FIELDS = ("error_code", "error_message", "resource_type", "resource_name", "configs")

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.configs = [] if configs is UNSET else configs
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeConfigsResourceResult(Struct):
        __slots__ = (
            "config_source",
            "config_type",
            "documentation",
            "is_sensitive",
            "name",
            "read_only",
            "synonyms",
            "value",
        )
        FIELDS = (
            "name",
            "value",
            "read_only",
            "config_source",
            "is_sensitive",
            "synonyms",
            "config_type",
            "documentation",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = UNSET,
            config_type: int = 0,
            documentation: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self.synonyms = [] if synonyms is UNSET else synonyms
            self.config_type = config_type
            self.documentation = documentation
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribeConfigsSynonym(Struct):
        __slots__ = ("name", "source", "value")
        FIELDS = ("name", "value", "source")

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            source: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.value = value
            self.source = source
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
