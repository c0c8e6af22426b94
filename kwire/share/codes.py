"""Error codes that other brokers answer with."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode


def known_code(code: int) -> ErrorCode:
    """The code; UNKNOWN_SERVER_ERROR for one of a later version of Kafka."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
