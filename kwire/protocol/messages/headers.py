"""Generated from `schema/headers.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Tags


class RequestHeader(Message):
    """RequestHeader, versions 1-2: a header."""

    __slots__ = ("client_id", "correlation_id", "request_api_key", "request_api_version")
    FIELDS = ("request_api_key", "request_api_version", "correlation_id", "client_id")
    KIND = "header"
    MIN_VERSION, MAX_VERSION = 1, 2

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ResponseHeader(Message):
    """ResponseHeader, versions 0-1: a header."""

    __slots__ = ("correlation_id",)
    FIELDS = ("correlation_id",)
    KIND = "header"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        correlation_id: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.correlation_id = correlation_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
