"""JSON Web Tokens: what stands in them, and which are accepted.

    base64url JSON     header: alg, kid
    .
    base64url JSON     claims: sub, exp, iat, nbf, iss, aud, scope
    .
    base64url bytes    signature over both, with the dot between; none of an unsecured one

Everything here comes from a client that nobody knows yet: sizes and types are checked, and a claim
is looked at only once the signature is. Source: RFC 7515, RFC 7519; which claims have to be there
is Apache Kafka 4.4's.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kwire.security.sasl.oauthbearer import Accepted, InvalidTokenError

JSON_DEPTH_MAX = 16
NUMBER_MAX = 10**12
"""Of seconds since the epoch."""

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
Object: TypeAlias = Mapping[str, Json]


class Jws(NamedTuple):
    """The parts of a token; `signed` is what the signature is over."""

    header: Object
    claims: Object
    signed: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "Jws([hidden])"


class Rules(NamedTuple):
    """Which claims are accepted; None: any audience, any issuer."""

    audiences: tuple[str, ...] | None = None
    issuer: str | None = None
    skew_ms: int = 0
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    needs_issued_at: bool = True


Verify: TypeAlias = Callable[[Jws], None]
"""InvalidTokenError where the signature is not that of a key."""


def parse_jws(token: str) -> Jws:
    """The parts of a token in the compact form; InvalidTokenError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidTokenError("not three parts")
    header, claims = _object(parts[0]), _object(parts[1])
    signed = f"{parts[0]}.{parts[1]}".encode()
    return Jws(header, claims, signed, decoded(parts[2]))


def validate_unsecured(token: str, wall_ms: int, rules: Rules) -> Accepted:
    """A token without a signature, which anybody can make: for development only."""
    jws = parse_jws(token)
    if jws.header.get("alg") != "none" or jws.signature:
        raise InvalidTokenError("signed, and an unsecured one was expected")
    return check_claims(jws.claims, wall_ms, rules)


def validate_signed(token: str, wall_ms: int, rules: Rules, verify: Verify) -> Accepted:
    """A token with the signature of a known key."""
    jws = parse_jws(token)
    verify(jws)
    return check_claims(jws.claims, wall_ms, rules)


def check_claims(claims: Object, wall_ms: int, rules: Rules) -> Accepted:
    """Whom the token is of, and until when; InvalidTokenError."""
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise InvalidTokenError("no expiration time")
    if expires_ms + rules.skew_ms <= wall_ms:
        raise InvalidTokenError("expired")
    issued_ms = _time_ms(claims, "iat")
    if issued_ms is None and rules.needs_issued_at:
        raise InvalidTokenError("no time of issue")
    for start_ms in (issued_ms, _time_ms(claims, "nbf")):
        if start_ms is not None and start_ms - rules.skew_ms > wall_ms:
            raise InvalidTokenError("not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidTokenError("of another issuer")
    if rules.audiences is not None:
        given = _texts(claims.get("aud"))
        if not any(audience in rules.audiences for audience in given):
            raise InvalidTokenError("for another audience")
    _texts(claims.get(rules.scope_claim, ""))
    name = claims.get(rules.subject_claim)
    if not isinstance(name, str) or not name.strip():
        raise InvalidTokenError(f"no {rules.subject_claim}")
    if not _is_text(name):
        raise InvalidTokenError(f"{rules.subject_claim} is no text")
    return Accepted(name.strip(), expires_ms)


def _is_text(name: str) -> bool:
    """Whether a name can be sent and stored: JSON can hold half a pair of surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time_ms(claims: Object, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"{name} is no number")
    if not 0 <= value <= NUMBER_MAX:  # also what is no number, or larger than any float
        raise InvalidTokenError(f"{name} is out of range")
    return int(value * 1000)


def _texts(value: Json) -> list[str]:
    """A claim that is one text or a list of texts."""
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise InvalidTokenError("a claim is neither a text nor a list of texts")
    return [one for one in values if isinstance(one, str)]


def decoded(text: str) -> bytes:
    """The bytes of a base64url text without padding; InvalidTokenError."""
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidTokenError("not base64url") from None


def _object(text: str) -> Object:
    return json_object(decoded(text))


def json_object(data: bytes) -> Object:
    """A JSON object; InvalidTokenError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidTokenError("not JSON") from None
    if not isinstance(found, dict):
        raise InvalidTokenError("not a JSON object")
    result: Object = found
    return result
