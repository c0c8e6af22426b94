"""Generated from `schema/api/delete_acls.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DeleteAclsRequest(Request["DeleteAclsResponse"]):
    """DeleteAclsRequest, versions 1-3: a request."""

    __slots__ = ("filters",)
    FIELDS = ("filters",)
    API_KEY = 31
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 3

    class DeleteAclsFilter(Struct):
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

    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.filters = [] if filters is UNSET else filters
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DeleteAclsResponse(Message):
    """DeleteAclsResponse, versions 1-3: a response."""

    __slots__ = ("filter_results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "filter_results")
    API_KEY = 31
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 3

    class DeleteAclsFilterResult(Struct):
        __slots__ = ("error_code", "error_message", "matching_acls")
        FIELDS = ("error_code", "error_message", "matching_acls")

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.matching_acls = [] if matching_acls is UNSET else matching_acls
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DeleteAclsMatchingAcl(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "host",
            "operation",
            "pattern_type",
            "permission_type",
            "principal",
            "resource_name",
            "resource_type",
        )
        FIELDS = (
            "error_code",
            "error_message",
            "resource_type",
            "resource_name",
            "pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.pattern_type = pattern_type
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
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is UNSET else filter_results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
