"""What a SASL mechanism is on the server's side, and what its names are.

Source: RFC 4422, RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
BUILT = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)

OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class Identity(NamedTuple):
    """Who a client is.

    `principal` is `User:name`; `by_token` says that a delegation token proved it. What proved it
    is good until `expires_ms` (wall clock), None: for as long as the connection.
    """

    principal: str
    by_token: bool = False
    expires_ms: int | None = None


class Answer(NamedTuple):
    """What the server says to a token; `identity` once the client has proved who it is."""

    token: bytes
    identity: Identity | None = None


class AuthenticationFailed(Exception):
    """The client is not who it says, or what it sent is no message of the mechanism.

    The text is the client's, None where it gets the one of its mechanism. It says nothing that a
    client may not know: not whether there is such a user, and no part of what was sent.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or "authentication failed")
        self.message = message


class ServerMechanism(Protocol):
    """One exchange with one client."""

    def evaluate(self, token: bytes, wall_ms: int) -> Answer:
        """The answer to a client's token; AuthenticationFailed ends the exchange."""
        ...


MakeMechanism: TypeAlias = Callable[[], ServerMechanism]
"""One for every exchange."""


def user(name: str) -> str:
    """The principal of a user's name."""
    return f"User:{name}"
