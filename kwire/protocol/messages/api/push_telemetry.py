"""Generated from `schema/api/push_telemetry.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags
from kwire.protocol.uuids import ZERO


class PushTelemetryRequest(Request["PushTelemetryResponse"]):
    """PushTelemetryRequest, version 0: a request."""

    __slots__ = (
        "client_instance_id",
        "compression_type",
        "metrics",
        "subscription_id",
        "terminating",
    )
    FIELDS = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")
    API_KEY = 72
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
        unknown_tags: Tags = (),
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class PushTelemetryResponse(Message):
    """PushTelemetryResponse, version 0: a response."""

    __slots__ = ("error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code")
    API_KEY = 72
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
