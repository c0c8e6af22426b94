"""Generated from `schema/api/describe_client_quotas.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    """DescribeClientQuotasRequest, versions 0-1: a request."""

    __slots__ = ("components", "strict")
    FIELDS = ("components", "strict")
    API_KEY = 48
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class ComponentData(Struct):
        __slots__ = ("entity_type", "match", "match_type")
        FIELDS = ("entity_type", "match_type", "match")

        def __init__(
            self,
            *,
            entity_type: str = "",
            match_type: int = 0,
            match: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.entity_type = entity_type
            self.match_type = match_type
            self.match = match
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        components: list[DescribeClientQuotasRequest.ComponentData] = UNSET,
        strict: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.components = [] if components is UNSET else components
        self.strict = strict
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotasResponse, versions 0-1: a response."""

    __slots__ = ("entries", "error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "entries")
    API_KEY = 48
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class EntryData(Struct):
        __slots__ = ("entity", "values")
        FIELDS = ("entity", "values")

        def __init__(
            self,
            *,
            entity: list[DescribeClientQuotasResponse.EntityData] = UNSET,
            values: list[DescribeClientQuotasResponse.ValueData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.entity = [] if entity is UNSET else entity
            self.values = [] if values is UNSET else values
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class EntityData(Struct):
        __slots__ = ("entity_name", "entity_type")
        FIELDS = ("entity_type", "entity_name")

        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.entity_type = entity_type
            self.entity_name = entity_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ValueData(Struct):
        __slots__ = ("key", "value")
        FIELDS = ("key", "value")

        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
            unknown_tags: Tags = (),
        ) -> None:
            self.key = key
            self.value = value
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[DescribeClientQuotasResponse.EntryData] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is UNSET else entries
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
