"""What the settings of a listener say about OAUTHBEARER: which tokens are accepted.

    sasl.server.callback.handler.class    Kafka's validator of signed tokens, which is the default,
                                          or its unsecured one, which has to be asked for by name
    sasl.oauthbearer.jwks.endpoint.url    where the keys of the issuer are: an address, or a file,
                                          that a system property allows (CVE-2025-27817); there is
                                          none to begin with. `ssl.` options of the login module
                                          are for https
    ...expected.audience and .issuer      asked for, unless ...allow.unverified... gives way

Each may be one listener's own. Source: KIP-255, KIP-768, KIP-1139; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.config.errors import ConfigError
from kwire.config.java_classes import (
    CALLBACK_HANDLER,
    CALLBACK_HANDLERS,
    SIGNED_TOKENS,
    UNSECURED_TOKENS,
)
from kwire.config.java_properties import ALLOWED_FILES, listed
from kwire.config.values import TypedValue
from kwire.security.sasl.jwt import Rules
from kwire.security.sasl.mechanisms import OAUTHBEARER
from kwire.security.sasl.settings import Settings, server_module
from kwire.security.sasl.token_settings import FILE_SCHEME, check_url, path_of, tls_options

JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"


class OAuthSettings(NamedTuple):
    """`jwks_url` None: tokens are unsecured."""

    rules: Rules
    jwks_url: str | None
    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_max_ms: int = 10_000
    tls: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"OAuthSettings({self.jwks_url})"


def oauth_settings(config: Settings, listener: str) -> OAuthSettings:
    """The settings of a listener; ConfigError, one line, for what cannot be used."""
    handler = config.of_listener(listener, CALLBACK_HANDLER, OAUTHBEARER)
    if handler == UNSECURED_TOKENS:
        return OAuthSettings(_unsecured_rules(config, listener), None)
    if handler not in (None, SIGNED_TOKENS):
        raise ConfigError(
            f"listener {listener}: {CALLBACK_HANDLER}={handler} is refused: Java plug-ins cannot "
            f"be loaded; accepted: {', '.join(CALLBACK_HANDLERS)}"
        )

    def value(name: str) -> TypedValue:
        return config.of_listener(listener, name, OAUTHBEARER)

    url = value(JWKS_URL)
    if not url:
        raise ConfigError(
            f"listener {listener}: OAUTHBEARER needs {JWKS_URL}, or for development "
            f"{CALLBACK_HANDLER}={UNSECURED_TOKENS}"
        )
    check_allowed(config, JWKS_URL, str(url))
    audiences, issuer = (
        value("sasl.oauthbearer.expected.audience"),
        value("sasl.oauthbearer.expected.issuer"),
    )
    module = server_module(config, listener, OAUTHBEARER)
    options = {} if module is None else module.options
    _check_verified(
        listener,
        "audience",
        bool(audiences),
        bool(value("sasl.oauthbearer.allow.unverified.audience")),
    )
    _check_verified(
        listener, "issuer", bool(issuer), bool(value("sasl.oauthbearer.allow.unverified.issuer"))
    )
    return OAuthSettings(
        Rules(
            tuple(map(str, audiences)) if isinstance(audiences, list) and audiences else None,
            str(issuer) if issuer else None,
            int(value("sasl.oauthbearer.clock.skew.seconds")) * 1000,
            str(value("sasl.oauthbearer.sub.claim.name")),
            str(value("sasl.oauthbearer.scope.claim.name")),
        ),
        str(url),
        int(value("sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        int(value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        int(value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")),
        tls_options(options),
    )


def check_allowed(config: Settings, setting: str, url: str) -> None:
    """ConfigError for an address or a file that no system property allows. Of a file either its
    URL is, as Kafka has it, or its path."""
    java_properties = config.java_properties
    if not url.startswith(FILE_SCHEME) or path_of(url) not in listed(
        java_properties, ALLOWED_FILES
    ):
        check_url(setting, url, java_properties)


def _check_verified(listener: str, what: str, is_expected: bool, gives_way: bool) -> None:
    if not is_expected and not gives_way:
        raise ConfigError(
            f"listener {listener}: sasl.oauthbearer.expected.{what} is not set, so that tokens for "
            f"anybody would be accepted; set it, or sasl.oauthbearer.allow.unverified.{what}=true"
        )


def _unsecured_rules(config: Settings, listener: str) -> Rules:
    module = server_module(config, listener, OAUTHBEARER)
    options = {} if module is None else module.options
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not skew.isascii() or not skew.isdigit():
        raise ConfigError(
            f"listener {listener}: unsecuredValidatorAllowableClockSkewMs is no number of ms"
        )
    return Rules(
        skew_ms=int(skew),
        subject_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        needs_issued_at=False,
    )
