"""OAUTHBEARER, the server's side: a bearer token in one message.

    n,[a=authzid],^Aauth=Bearer TOKEN^A[name=value^A...]^A

A token that is not accepted is answered by `{"status":"invalid_token"}`, which the client has to
acknowledge by ^A before it is refused. Source: RFC 7628, KIP-255; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kwire.security.sasl.mechanisms import Answer, AuthenticationFailed, Identity, user

TOKEN_BYTES_MAX = 64 * 1024
INVALID_TOKEN = b'{"status":"invalid_token"}'
ACKNOWLEDGED = b"\x01"

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x21-\x7e \t\r\n]+"
_MESSAGE = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+={_VALUE}\x01)*)\x01"
)
_BEARER = re.compile(r"bearer +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)


class Accepted(NamedTuple):
    """Whom a token is of, and until when (wall clock, ms)."""

    name: str
    expires_ms: int


class InvalidTokenError(Exception):
    """Why a token is not accepted: for the log, clients are not told. Holds no part of it."""


Validate: TypeAlias = Callable[[str, int], Accepted]
"""(token, wall clock in ms) -> whom it is of; InvalidTokenError."""


class OAuthBearerServer:
    """One exchange: one token, or two where the first is refused."""

    __slots__ = ("_is_refused", "_validate")

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._is_refused = False

    def evaluate(self, token: bytes, wall_ms: int) -> Answer:
        """See `ServerMechanism.evaluate`."""
        if self._is_refused:
            is_acknowledged = token == ACKNOWLEDGED
            raise AuthenticationFailed(INVALID_TOKEN.decode() if is_acknowledged else None)
        if len(token) > TOKEN_BYTES_MAX:
            raise AuthenticationFailed
        match = _MESSAGE.fullmatch(token.decode("utf-8", "replace"))
        if match is None:
            raise AuthenticationFailed
        bearer = _BEARER.fullmatch(_auth_of(match["pairs"]))
        if bearer is None:
            raise AuthenticationFailed
        try:
            accepted = self._validate(bearer["token"], wall_ms)
        except InvalidTokenError:
            self._is_refused = True
            return Answer(INVALID_TOKEN)
        asked = (match["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
        if asked and asked != accepted.name:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({asked}) that is "
                f"different from the token's principal name ({accepted.name})"
            )
        return Answer(b"", Identity(user(accepted.name), expires_ms=accepted.expires_ms))


def _auth_of(pairs: str) -> str:
    """The one value of `auth`; AuthenticationFailed where there is none, or another beside it."""
    values = [
        value
        for name, _, value in (pair.partition("=") for pair in pairs.split("\x01") if pair)
        if name == "auth"
    ]
    if len(values) != 1:
        raise AuthenticationFailed
    return values[0]
