"""Generated from `schema/api/create_acls.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class CreateAclsRequest(Request["CreateAclsResponse"]):
    """CreateAclsRequest, versions 1-3: a request."""

    __slots__ = ("creations",)
    FIELDS = ("creations",)
    API_KEY = 30
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 3

    class AclCreation(Struct):
        __slots__ = (
            "host",
            "operation",
            "permission_type",
            "principal",
            "resource_name",
            "resource_pattern_type",
            "resource_type",
        )
        FIELDS = (
            "resource_type",
            "resource_name",
            "resource_pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            resource_pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.resource_type = resource_type
            self.resource_name = resource_name
            self.resource_pattern_type = resource_pattern_type
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
        creations: list[CreateAclsRequest.AclCreation] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.creations = [] if creations is UNSET else creations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class CreateAclsResponse(Message):
    """CreateAclsResponse, versions 1-3: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 30
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 3

    class AclCreationResult(Struct):
        __slots__ = ("error_code", "error_message")
        FIELDS = ("error_code", "error_message")

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreateAclsResponse.AclCreationResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
