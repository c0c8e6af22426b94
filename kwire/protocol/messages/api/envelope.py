"""Generated from `schema/api/envelope.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class EnvelopeRequest(Request["EnvelopeResponse"]):
    """EnvelopeRequest, version 0: a request."""

    __slots__ = ("client_host_address", "request_data", "request_principal")
    FIELDS = ("request_data", "request_principal", "client_host_address")
    API_KEY = 58
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
        unknown_tags: Tags = (),
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class EnvelopeResponse(Message):
    """EnvelopeResponse, version 0: a response."""

    __slots__ = ("error_code", "response_data")
    FIELDS = ("response_data", "error_code")
    API_KEY = 58
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
