"""What the settings of a client say about SASL: Kafka's `security.protocol`, `sasl.mechanism` and
`sasl.jaas.config`, of a client's properties or of a broker that is a client of others.

    PLAIN         username, password
    SCRAM-...     username, password; tokenauth=true: the id and the HMAC of a delegation token
    OAUTHBEARER   unsecuredLoginStringClaim_sub and its like: a token that proves nothing

Tokens of an issuer are got elsewhere (`token_settings.py`, `kwire/security/token_login.py`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.config.listeners import CLIENT_PROTOCOL, WITH_SASL
from kwire.security.sasl.client import (
    OAuthBearerClient,
    PlainClient,
    SaslClient,
    ScramClient,
)
from kwire.security.sasl.jaas import LoginModule
from kwire.security.sasl.mechanisms import BUILT, OAUTHBEARER, PLAIN
from kwire.security.sasl.settings import JAAS, one_module

MECHANISM = "sasl.mechanism"
GSSAPI = "GSSAPI"
STRING_CLAIM, LIST_CLAIM = "unsecuredLoginStringClaim", "unsecuredLoginListClaim"
EXTENSION, SUBJECT = "unsecuredLoginExtension", "unsecuredLoginPrincipalClaimName"
LIFETIME = "unsecuredLoginLifetimeSeconds"

MakeLogin = Callable[[], SaslClient]
"""One login for every connection."""


def client_login(
    properties: Mapping[str, str], random: Random, wall_ms: Callable[[], int]
) -> MakeLogin | None:
    """How the client of these properties logs in; None where its protocol has no SASL.

    ConfigError, one line, for what cannot be used.
    """
    protocol = properties.get(CLIENT_PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in WITH_SASL:
        return None
    mechanism = properties.get(MECHANISM, GSSAPI).strip()
    check_mechanism(MECHANISM, mechanism)
    text = properties.get(JAAS)
    if text is None:
        raise ConfigError(f"{JAAS} is not set; {CLIENT_PROTOCOL}={protocol} needs it")
    return login(JAAS, mechanism, one_module(JAAS, text, mechanism), random, wall_ms)


def check_mechanism(setting: str, mechanism: str) -> None:
    """ConfigError for a mechanism that is not built."""
    if mechanism not in BUILT:
        raise ConfigError(
            f"{setting}={mechanism} is refused: {mechanism} is not built; accepted: one of "
            + ", ".join(BUILT)
        )


def login(
    setting: str,
    mechanism: str,
    module: LoginModule,
    random: Random,
    wall_ms: Callable[[], int],
) -> MakeLogin:
    """What a login module's options log in with; ConfigError where something is missing."""
    options = module.options
    if mechanism == OAUTHBEARER:
        return _unsecured_login(setting, options, wall_ms)
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise ConfigError(f"{setting}: {module.name} has no {' and no '.join(missing)}")
    user, password = options["username"], options["password"]
    by_token = options.get("tokenauth", "").lower() == "true"

    def make() -> SaslClient:
        if mechanism == PLAIN:
            return SaslClient(PlainClient(user, password))
        return SaslClient(ScramClient(mechanism, user, password, random, by_token))

    return make


def _unsecured_login(
    setting: str, options: Mapping[str, str], wall_ms: Callable[[], int]
) -> MakeLogin:
    """A login by tokens that are made here, as the options say."""
    claims: dict[str, object] = {}
    extensions: dict[str, str] = {}
    lifetime = options.get(LIFETIME, "3600")
    if not lifetime.isascii() or not lifetime.isdigit():
        raise ConfigError(f"{setting}: {LIFETIME} is no number of seconds")
    for name, text in options.items():
        kind, _, claim = name.partition("_")
        if kind == STRING_CLAIM:
            claims[claim] = text
        elif kind == LIST_CLAIM:
            claims[claim] = text[1:].split(text[0]) if text else []
        elif kind == EXTENSION:
            extensions[claim] = text
    subject = options.get(SUBJECT, "sub")
    if not claims.get(subject):
        raise ConfigError(f"{setting}: OAUTHBEARER needs {STRING_CLAIM}_{subject}")

    def make() -> SaslClient:
        now_s = wall_ms() // 1000
        times = {"iat": now_s, "exp": now_s + int(lifetime)}
        token = f"{_part({'alg': 'none'})}.{_part({**times, **claims})}."
        return SaslClient(OAuthBearerClient(token, extensions))

    return make


def _part(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
