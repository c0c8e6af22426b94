"""Generated from `schema/api/controller_registration.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class ControllerRegistrationRequest(Request["ControllerRegistrationResponse"]):
    """ControllerRegistrationRequest, version 0: a request."""

    __slots__ = ("controller_id", "features", "incarnation_id", "listeners", "zk_migration_ready")
    FIELDS = ("controller_id", "incarnation_id", "zk_migration_ready", "listeners", "features")
    API_KEY = 70
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class Listener(Struct):
        __slots__ = ("host", "name", "port", "security_protocol")
        FIELDS = ("name", "host", "port", "security_protocol")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Feature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version", "name")
        FIELDS = ("name", "min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO,
        zk_migration_ready: bool = False,
        listeners: list[ControllerRegistrationRequest.Listener] = UNSET,
        features: list[ControllerRegistrationRequest.Feature] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners = [] if listeners is UNSET else listeners
        self.features = [] if features is UNSET else features
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ControllerRegistrationResponse(Message):
    """ControllerRegistrationResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 70
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
