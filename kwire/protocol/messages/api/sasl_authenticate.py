"""Generated from `schema/api/sasl_authenticate.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    """SaslAuthenticateRequest, versions 0-2: a request."""

    __slots__ = ("auth_bytes",)
    FIELDS = ("auth_bytes",)
    API_KEY = 36
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
        unknown_tags: Tags = (),
    ) -> None:
        self.auth_bytes = auth_bytes
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class SaslAuthenticateResponse(Message):
    """SaslAuthenticateResponse, versions 0-2: a response."""

    __slots__ = ("auth_bytes", "error_code", "error_message", "session_lifetime_ms")
    FIELDS = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    API_KEY = 36
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
