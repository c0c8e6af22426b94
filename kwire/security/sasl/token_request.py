"""What an issuer is asked for a token, what it answers, and when the token is replaced.

    POST, form      grant_type=client_credentials[&scope=...], with Authorization: Basic
                    client_assertion_type=...&client_assertion=...&grant_type=client_credentials...
                    grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=...[&scope=...]
    answer          JSON with access_token, else id_token

Bytes are those of Apache Kafka 4.4 (measured): in the first form the scope stands as it is set.
Source: RFC 6749, RFC 7523, KIP-768, KIP-1139, KIP-1258.
"""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import quote_plus

from kwire.security.sasl.jwt import decoded, json_object
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_settings import RefreshSettings, TokenSettings

ANSWER_BYTES_MAX = 256 * 1024
FINAL_STATUSES = (*range(400, 408), *range(409, 416), 501, 505)
"""Another attempt would be answered alike."""
RETRY_S = 10
"""Until a token that could not be replaced is asked for again."""
TIME_MS_MAX = 1 << 53

_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class TokenRequest(NamedTuple):
    """A POST."""

    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return "TokenRequest()"


class Token(NamedTuple):
    """A token that was got, and when it ends; times of the wall clock."""

    text: str
    starts_ms: int | None
    expires_ms: int

    def __repr__(self) -> str:
        return f"Token(expires_ms={self.expires_ms})"


def token_request(settings: TokenSettings, assertion: str | None) -> TokenRequest:
    """What to send; `assertion` where the settings have one."""
    headers = {
        "Accept": "application/json",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    scope = settings.scope
    if assertion is None:
        pair = settings.client_id or "", settings.secret or ""
        if settings.is_encoded:
            pair = quote_plus(pair[0]), quote_plus(pair[1])
        credentials = base64.b64encode(f"{pair[0]}:{pair[1]}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
        body = "grant_type=client_credentials" + (f"&scope={scope}" if scope else "")
        return TokenRequest(headers, body.encode())
    fields: list[tuple[str, str | None]]
    if settings.grants:
        fields = [("grant_type", _BEARER), ("assertion", assertion), ("scope", scope)]
    else:
        fields = [
            ("client_assertion_type", _ASSERTION_TYPE),
            ("client_assertion", assertion),
            ("grant_type", "client_credentials"),
            ("client_id", settings.client_id),
            ("scope", scope),
        ]
    body = "&".join(f"{name}={quote_plus(value)}" for name, value in fields if value)
    return TokenRequest(headers, body.encode())


def token_of_answer(body: bytes) -> str:
    """The token in an issuer's answer; InvalidTokenError, which tells nothing of it."""
    if len(body) > ANSWER_BYTES_MAX:
        raise InvalidTokenError(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
    answer = json_object(body)
    for name in ("access_token", "id_token"):
        value = answer.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    raise InvalidTokenError("an answer without access_token")


def error_of_answer(body: bytes) -> str:
    """What an issuer says about its refusal: codes only, no more than 100 characters."""
    try:
        answer = json_object(body)
    except InvalidTokenError:
        return ""
    code = answer.get("error") or answer.get("errorCode")
    if not isinstance(code, str):
        return ""
    return "".join(letter for letter in code if " " <= letter <= "~")[:100]


def checked_token(text: str, settings: TokenSettings) -> Token:
    """What a client may look at: three parts, who it is of, until when; InvalidTokenError.

    Its signature is the broker's business.
    """
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidTokenError("a token with other than printable letters")
    parts = text.split(".")
    if len(parts) != 3 or not all(part.strip() for part in parts):
        raise InvalidTokenError("not a token of three parts")
    json_object(decoded(parts[0]))
    claims = json_object(decoded(parts[1]))
    subject = claims.get(settings.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidTokenError(f"no {settings.subject_claim}")
    expires_ms = _time_ms(claims.get("exp"))
    if expires_ms is None:
        raise InvalidTokenError("no expiration time")
    return Token(text, _time_ms(claims.get("iat")), expires_ms)


def _time_ms(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError("a time is no number")
    if not 0 <= value <= TIME_MS_MAX / 1000:
        raise InvalidTokenError("a time is out of range")
    return int(value) * 1000


def refresh_at_ms(token: Token, wall_ms: int, settings: RefreshSettings, chance: float) -> int:
    """When the token is replaced, as Kafka's logins do it; `chance` is between 0 and 1."""
    part = settings.window_factor + settings.window_jitter * chance
    if not 0 < part < 1:  # no setting of a node is held to that, and one may be no number
        part = RefreshSettings().window_factor
    min_period_s, buffer_s = max(0, settings.min_period_s), max(0, settings.buffer_s)
    if wall_ms >= token.expires_ms:
        return wall_ms + RETRY_S * 1000
    left_ms = token.expires_ms - wall_ms
    if (min_period_s + buffer_s) * 1000 > left_ms:
        return wall_ms + int(left_ms * part)  # too short-lived for both rules
    starts_ms = wall_ms if token.starts_ms is None else token.starts_ms
    at_ms = starts_ms + int((token.expires_ms - starts_ms) * part)
    at_ms = min(at_ms, token.expires_ms - buffer_s * 1000)
    return max(at_ms, wall_ms + min_period_s * 1000)
