"""Generated from `schema/api/alter_client_quotas.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    """AlterClientQuotasRequest, versions 0-1: a request."""

    __slots__ = ("entries", "validate_only")
    FIELDS = ("entries", "validate_only")
    API_KEY = 49
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class EntryData(Struct):
        __slots__ = ("entity", "ops")
        FIELDS = ("entity", "ops")

        def __init__(
            self,
            *,
            entity: list[AlterClientQuotasRequest.EntityData] = UNSET,
            ops: list[AlterClientQuotasRequest.OpData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.entity = [] if entity is UNSET else entity
            self.ops = [] if ops is UNSET else ops
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

    class OpData(Struct):
        __slots__ = ("key", "remove", "value")
        FIELDS = ("key", "value", "remove")

        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
            remove: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.key = key
            self.value = value
            self.remove = remove
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequest.EntryData] = UNSET,
        validate_only: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.entries = [] if entries is UNSET else entries
        self.validate_only = validate_only
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterClientQuotasResponse(Message):
    """AlterClientQuotasResponse, versions 0-1: a response."""

    __slots__ = ("entries", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "entries")
    API_KEY = 49
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class EntryData(Struct):
        __slots__ = ("entity", "error_code", "error_message")
        FIELDS = ("error_code", "error_message", "entity")

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            entity: list[AlterClientQuotasResponse.EntityData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.entity = [] if entity is UNSET else entity
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

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponse.EntryData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is UNSET else entries
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
