"""Generated from `schema/api/sasl_handshake.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Tags


class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    """SaslHandshakeRequest, versions 0-1: a request."""

    __slots__ = ("mechanism",)
    FIELDS = ("mechanism",)
    API_KEY = 17
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        mechanism: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.mechanism = mechanism
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class SaslHandshakeResponse(Message):
    """SaslHandshakeResponse, versions 0-1: a response."""

    __slots__ = ("error_code", "mechanisms")
    FIELDS = ("error_code", "mechanisms")
    API_KEY = 17
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is UNSET else mechanisms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
