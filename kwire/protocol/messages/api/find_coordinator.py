"""Generated from `schema/api/find_coordinator.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    """FindCoordinatorRequest, versions 0-6: a request."""

    __slots__ = ("coordinator_keys", "key", "key_type")
    FIELDS = ("key", "key_type", "coordinator_keys")
    API_KEY = 10
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 6

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is UNSET else coordinator_keys
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class FindCoordinatorResponse(Message):
    """FindCoordinatorResponse, versions 0-6: a response."""

    __slots__ = (
        "coordinators",
        "error_code",
        "error_message",
        "host",
        "node_id",
        "port",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
    )
    API_KEY = 10
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 6

    class Coordinator(Struct):
        __slots__ = ("error_code", "error_message", "host", "key", "node_id", "port")
        FIELDS = ("key", "node_id", "host", "port", "error_code", "error_message")

        def __init__(
            self,
            *,
            key: str = "",
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.key = key
            self.node_id = node_id
            self.host = host
            self.port = port
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[FindCoordinatorResponse.Coordinator] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is UNSET else coordinators
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
