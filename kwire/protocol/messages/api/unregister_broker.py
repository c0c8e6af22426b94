"""Generated from `schema/api/unregister_broker.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"]):
    """UnregisterBrokerRequest, version 0: a request."""

    __slots__ = ("broker_id",)
    FIELDS = ("broker_id",)
    API_KEY = 64
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UnregisterBrokerResponse(Message):
    """UnregisterBrokerResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 64
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
