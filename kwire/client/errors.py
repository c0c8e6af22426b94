"""What goes wrong for a client: an error class for what can be done about it, one line each."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode, is_retriable


class ClientError(Exception):
    """What went wrong, in one line."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same may succeed later."""
        return False


class Unreachable(ClientError):
    """No connection to it can be made now."""

    @property
    def is_retriable(self) -> bool:
        return True


class Unanswered(ClientError):
    """The time for an answer is over: to ask again would double it."""


class Closed(ClientError):
    """The other side closed the connection in the place of an answer."""

    @property
    def is_retriable(self) -> bool:
        return True


class LoginFailed(ClientError):
    """The broker does not take the credentials, or is not who it says."""


class Unsupported(ClientError):
    """The broker does not have the API, or no version of it that is known here."""


class RequestFailed(ClientError):
    """The broker answered with an error code."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{what}: {_WORDS.get(self.code) or message or self.code.name}")

    @property
    def is_retriable(self) -> bool:
        return is_retriable(self.code)


# Where the broker's words (or none) say less to somebody at a terminal.
_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "not found",
    ErrorCode.GROUP_ID_NOT_FOUND: "not found",
    ErrorCode.NON_EMPTY_GROUP: "has members",
}


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise RequestFailed for anything but NONE."""
    if code != ErrorCode.NONE:
        raise RequestFailed(code, what, message)
