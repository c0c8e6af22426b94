"""Frames: a size, a header and a message, in both directions.

| size | type            | field                                                              |
|------|-----------------|--------------------------------------------------------------------|
| 4    | int32           | size of what follows (of the frame without itself)                  |
| 2    | int16           | API key            (requests)                                       |
| 2    | int16           | API version        (requests)                                       |
| 4    | int32           | correlation id                                                      |
| 2+n  | nullable string | client id          (requests; int16 length, never compact)          |
| 1+n  | tag section     | request header 2 and response header 1: in flexible versions        |
|      |                 | (never in a response of ApiVersions, whatever its version)          |

The parsers here get a frame without its size.
"""

from __future__ import annotations

from struct import Struct as PackStruct
from struct import error as PackError
from typing import Any, NamedTuple, Protocol

from kwire.protocol import messages
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.errors import EncodeError, MalformedError
from kwire.protocol.structs import Message, Parts
from kwire.protocol.text import decode_text
from kwire.protocol.varint import read_uvarint

__all__ = [
    "AnswerCounts",
    "RequestHeader",
    "decode_response",
    "encode_answer",
    "encode_request",
    "encode_response",
    "has_flexible_request_header",
    "has_flexible_response_header",
    "parse_request_header",
    "with_version",
]

Buffer = bytes | bytearray | memoryview

_REQUEST = PackStruct(">hhih")
_REQUEST_HEAD = PackStruct(">ihhih")
_RESPONSE_HEAD = PackStruct(">ii")
_FLEXIBLE_RESPONSE_HEAD = PackStruct(">iix")
_CORRELATION = PackStruct(">i")
_JOIN_SIZE_BYTES_MAX = 16384
"""A header is joined with a first piece up to this size: one write less for one small copy."""

_FLEXIBLE_FROM = {
    int(key): info.flexible_from for key, info in API_KEYS.items() if info.flexible_from is not None
}
_FLEXIBLE_RESPONSE_FROM = {
    key: first for key, first in _FLEXIBLE_FROM.items() if key != ApiKey.API_VERSIONS
}
NEVER = 1 << 16


class RequestHeader(NamedTuple):
    """Header of a request; `body_offset` is where the message starts in the parsed buffer."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


_new_tuple: Any = tuple.__new__  # without the detour through keyword arguments


def has_flexible_request_header(api_key: int, version: int) -> bool:
    """Whether the request has header 2; also defined for versions that the API does not have."""
    first = _FLEXIBLE_FROM.get(api_key)
    return first is not None and version >= first


def has_flexible_response_header(api_key: int, version: int) -> bool:
    """Whether the response has header 1."""
    return version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER)


def parse_request_header(buffer: Buffer, offset: int = 0) -> RequestHeader:
    """The header of a request of any key and version; whether it is supported is not checked.

    Raises MalformedError when the buffer does not hold a header.
    """
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(buffer, offset)
        position = offset + 10
        if length < 0:
            client_id = None
        else:
            end = position + length
            if end > len(buffer):
                raise MalformedError("the client id ends behind the request")
            client_id = decode_text(buffer[position:end])
            position = end
        first = _FLEXIBLE_FROM.get(api_key)
        if first is not None and version >= first:
            if buffer[position]:
                position = _skip_tags(buffer, position)
            else:
                position += 1
    except (PackError, IndexError):
        raise MalformedError("the request ends inside its header") from None
    header: RequestHeader = _new_tuple(
        RequestHeader, (api_key, version, correlation_id, client_id, position)
    )
    return header


def with_version(request: bytes, version: int) -> bytes:
    """A request as a frame without its size, that says another version; what it holds stays."""
    return request[:2] + version.to_bytes(2, "big") + request[4:]


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, request: Message
) -> Parts:
    """A whole frame, size included, as buffers to be written one after another."""
    parts = request.encode_parts(version)
    name = b"" if client_id is None else client_id.encode()
    tail = name + b"\0" if version >= _FLEXIBLE_FROM.get(api_key, NEVER) else name
    size = 10 + len(tail) + (len(parts[0]) if len(parts) == 1 else sum(map(len, parts)))
    length = -1 if client_id is None else len(name)
    try:
        head = _REQUEST_HEAD.pack(size, api_key, version, correlation_id, length) + tail
    except PackError as error:
        raise EncodeError(f"request header: {error}") from error
    return _with_head(head, parts)


def encode_response(api_key: int, version: int, correlation_id: int, response: Message) -> Parts:
    """A whole frame, size included, as buffers to be written one after another."""
    parts = response.encode_parts(version)
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    if version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER):
        head = _FLEXIBLE_RESPONSE_HEAD.pack(size + 5, correlation_id)
    else:
        head = _RESPONSE_HEAD.pack(size + 4, correlation_id)
    return _with_head(head, parts)


class AnswerCounts(Protocol):
    """Who counts answers: by its version one that is as most are (`Message.encode_answer`), and
    every other one for itself."""

    usual: list[int]

    def count_unusual(self, version: int, response: Any, /) -> None: ...


def encode_answer(
    api_key: int, version: int, correlation_id: int, response: Any, counts: AnswerCounts
) -> Parts:
    """As `encode_response`; the response is counted."""
    parts: Parts = []
    is_unusual: bool = response.encode_answer(version, parts)
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    if version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER):
        head = _FLEXIBLE_RESPONSE_HEAD.pack(size + 5, correlation_id)
    else:
        head = _RESPONSE_HEAD.pack(size + 4, correlation_id)
    if is_unusual:
        counts.count_unusual(version, response)
    else:
        counts.usual.append(version)
    return _with_head(head, parts)


def decode_response(api_key: int, version: int, buffer: Buffer) -> tuple[int, Any]:
    """(correlation id, response) of a frame without its size; raises MalformedError."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(buffer, 0)
        position = 4
        if version >= _FLEXIBLE_RESPONSE_FROM.get(api_key, NEVER):
            position = _skip_tags(buffer, 4) if buffer[4] else 5
    except (PackError, IndexError):
        raise MalformedError("the response ends inside its header") from None
    cls = messages.response_class(api_key)
    response, _ = cls.decode_from(buffer, position, version)
    return correlation_id, response


def _with_head(head: bytes, parts: Parts) -> Parts:
    if parts and type(parts[0]) is bytes and len(parts[0]) <= _JOIN_SIZE_BYTES_MAX:
        parts[0] = head + parts[0]
    else:
        parts.insert(0, head)
    return parts


def _skip_tags(buffer: Buffer, position: int) -> int:
    """The position after a tag section of fields that nobody here knows."""
    count, position = read_uvarint(buffer, position)
    if count < 0 or count * 2 > len(buffer) - position:
        raise MalformedError("too many tagged fields in a header")
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if size < 0 or size > len(buffer) - position:
            raise MalformedError("a tagged field of a header is too long")
        position += size
    return position
