"""PLAIN, the server's side: users and their passwords stand in the listener's settings.

    UTF-8 text   authorization id   may be empty, else the same as the user
    1            NUL
    UTF-8 text   user
    1            NUL
    UTF-8 text   password

Source: RFC 4616; texts and order of the checks measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kwire.security.sasl.mechanisms import OTHER_ID, Answer, AuthenticationFailed, Identity, user

INVALID = "Authentication failed: Invalid username or password"


class Passwords:
    """The passwords of PLAIN by user. What is compared takes as long for an unknown user."""

    __slots__ = ("_passwords",)

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {name: text.encode() for name, text in passwords.items()}

    def is_right(self, name: str, password: str) -> bool:
        """Whether it is the password of that user."""
        kept = self._passwords.get(name)
        given = password.encode()
        same = hmac.compare_digest(given, given if kept is None else kept)
        return same and kept is not None

    def __repr__(self) -> str:
        return f"Passwords({len(self._passwords)} users)"


class PlainServer:
    """One exchange: one token."""

    __slots__ = ("_passwords",)

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    def evaluate(self, token: bytes, wall_ms: int) -> Answer:
        """See `ServerMechanism.evaluate`."""
        fields = token.decode("utf-8", "replace").split("\0", 3)
        if len(fields) != 3:
            raise AuthenticationFailed(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}"
            )
        authorization_id, name, password = fields
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        if not self._passwords.is_right(name, password):
            raise AuthenticationFailed(INVALID)
        if authorization_id and authorization_id != name:
            raise AuthenticationFailed(OTHER_ID)
        return Answer(b"", Identity(user(name)))
