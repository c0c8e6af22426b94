"""Generated from `schema/api/get_telemetry_subscriptions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Tags
from kwire.protocol.uuids import ZERO


class GetTelemetrySubscriptionsRequest(Request["GetTelemetrySubscriptionsResponse"]):
    """GetTelemetrySubscriptionsRequest, version 0: a request."""

    __slots__ = ("client_instance_id",)
    FIELDS = ("client_instance_id",)
    API_KEY = 71
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO,
        unknown_tags: Tags = (),
    ) -> None:
        self.client_instance_id = client_instance_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class GetTelemetrySubscriptionsResponse(Message):
    """GetTelemetrySubscriptionsResponse, version 0: a response."""

    __slots__ = (
        "accepted_compression_types",
        "client_instance_id",
        "delta_temporality",
        "error_code",
        "push_interval_ms",
        "requested_metrics",
        "subscription_id",
        "telemetry_max_bytes",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )
    API_KEY = 71
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = UNSET,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = (
            [] if accepted_compression_types is UNSET else accepted_compression_types
        )
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is UNSET else requested_metrics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
