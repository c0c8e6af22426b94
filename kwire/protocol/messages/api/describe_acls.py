"""Generated from `schema/api/describe_acls.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeAclsRequest(Request["DescribeAclsResponse"]):
    """DescribeAclsRequest, versions 1-3: a request."""

    __slots__ = (
        "host_filter",
        "operation",
        "pattern_type_filter",
        "permission_type",
        "principal_filter",
        "resource_name_filter",
        "resource_type_filter",
    )
    FIELDS = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    API_KEY = 29
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 3

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeAclsResponse(Message):
    """DescribeAclsResponse, versions 1-3: a response."""

    __slots__ = ("error_code", "error_message", "resources", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "resources")
    API_KEY = 29
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 3

    class DescribeAclsResource(Struct):
        __slots__ = ("acls", "pattern_type", "resource_name", "resource_type")
        FIELDS = ("resource_type", "resource_name", "pattern_type", "acls")

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            acls: list[DescribeAclsResponse.AclDescription] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.pattern_type = pattern_type
            self.acls = [] if acls is UNSET else acls
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AclDescription(Struct):
        __slots__ = ("host", "operation", "permission_type", "principal")
        FIELDS = ("principal", "host", "operation", "permission_type")

        def __init__(
            self,
            *,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.principal = principal
            self.host = host
            self.operation = operation
            self.permission_type = permission_type
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResponse.DescribeAclsResource] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is UNSET else resources
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
