"""Generated from `schema/api/renew_delegation_token.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    """RenewDelegationTokenRequest, versions 1-2: a request."""

    __slots__ = ("hmac", "renew_period_ms")
    FIELDS = ("hmac", "renew_period_ms")
    API_KEY = 39
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 2

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RenewDelegationTokenResponse(Message):
    """RenewDelegationTokenResponse, versions 1-2: a response."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    FIELDS = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY = 39
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
