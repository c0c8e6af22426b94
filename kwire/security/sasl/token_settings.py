"""What the settings of who logs in say about getting a token, by Kafka's names.

    sasl.login.callback.handler.class       ...OAuthBearerLoginCallbackHandler: an issuer's token
    sasl.oauthbearer.token.endpoint.url     where it is got: an address, or a file that holds it
    sasl.oauthbearer.jwt.retriever.class    how: DefaultJwtRetriever (by the URL), or one of
                                            ClientCredentials-, JwtBearer-, FileJwtRetriever
    sasl.oauthbearer.client.credentials.*   an id and a secret (also options of the login module:
                                            clientId, clientSecret, scope)
    sasl.oauthbearer.assertion.*            a signed statement in their place (KIP-1258), or as
                                            the grant itself (JwtBearerJwtRetriever, KIP-1139)

Addresses have to be allowed by a system property, also one of a file; files of assertions by
another (CVE-2025-27817). Options `extension_NAME` go to the broker with the token, options `ssl.*`
are for the issuer's address. Source: KIP-768, KIP-1139, KIP-1258; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from kwire.config.errors import ConfigError
from kwire.config.java_classes import (
    BY_FILE,
    BY_GRANT,
    BY_URL,
    ISSUED_TOKENS,
    LOGIN_HANDLER,
    RETRIEVER,
    check_class,
)
from kwire.config.java_properties import ALLOWED_FILES, ALLOWED_URLS, listed
from kwire.config.values import TypedValue

TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
ISSUER = "sasl.oauthbearer.assertion.claim.iss"
ENCODED_HEADER = "sasl.oauthbearer.header.urlencode"
EXTENSION = "extension_"
FILE_SCHEME = "file:"

_EXTENSION_NAME = re.compile(r"[a-zA-Z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")

SettingOf = Callable[[str], TypedValue]


class AssertionSettings(NamedTuple):
    """A file that holds one, or what to make one of; times in seconds."""

    file: str | None = None
    key_file: str | None = None
    passphrase: str | None = None
    algorithm: str = "RS256"
    template_file: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    expires_s: int = 300
    not_before_s: int = 60
    has_id: bool = False

    def __repr__(self) -> str:
        return f"AssertionSettings({self.file or self.key_file})"


class TokenSettings(NamedTuple):
    """See the module. `grants` says that the assertion is what the token is given for; without it
    is who asks. `tls` are options of the issuer's address, `extensions` go to the broker."""

    url: str
    client_id: str | None = None
    secret: str | None = None
    scope: str | None = None
    is_encoded: bool = False
    assertion: AssertionSettings | None = None
    grants: bool = False
    extensions: tuple[tuple[str, str], ...] = ()
    tls: tuple[tuple[str, str], ...] = ()
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    retry_ms: int = 100
    retry_max_ms: int = 10_000
    connect_timeout_ms: int | None = None
    read_timeout_ms: int | None = None

    def __repr__(self) -> str:
        return f"TokenSettings({self.url})"


class RefreshSettings(NamedTuple):
    """When a token is replaced: `sasl.login.refresh.*`."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    @classmethod
    def read(cls, setting: SettingOf) -> RefreshSettings:
        """The settings as they are now."""
        return cls(
            float(setting("sasl.login.refresh.window.factor")),
            float(setting("sasl.login.refresh.window.jitter")),
            int(setting("sasl.login.refresh.min.period.seconds")),
            int(setting("sasl.login.refresh.buffer.seconds")),
        )


def gets_tokens(setting: SettingOf) -> bool:
    """Whether tokens are an issuer's, not made here; ConfigError for another class."""
    handler = setting(LOGIN_HANDLER)
    check_class(LOGIN_HANDLER, handler)
    return bool(handler == ISSUED_TOKENS)


def token_settings(
    setting: SettingOf, options: Mapping[str, str], java_properties: Mapping[str, str]
) -> TokenSettings:
    """See the module; ConfigError, one line, for what cannot be used. Files are not looked at."""
    retriever = setting(RETRIEVER) or BY_URL
    check_class(RETRIEVER, retriever)
    url = _text(setting, TOKEN_URL)
    if url is None:
        raise ConfigError(f"{TOKEN_URL} is not set: there is no place to get a token from")
    check_url(TOKEN_URL, url, java_properties)
    is_file = url.startswith(FILE_SCHEME)
    if retriever != BY_URL and is_file != (retriever == BY_FILE):
        raise ConfigError(f"{RETRIEVER}={retriever} does not go with {TOKEN_URL}={url}")
    found = TokenSettings(
        url,
        extensions=_extensions(options),
        tls=tls_options(options),
        subject_claim=str(setting("sasl.oauthbearer.sub.claim.name") or "sub"),
        scope_claim=str(setting("sasl.oauthbearer.scope.claim.name") or "scope"),
        retry_ms=int(setting("sasl.login.retry.backoff.ms")),
        retry_max_ms=int(setting("sasl.login.retry.backoff.max.ms")),
        connect_timeout_ms=_number(setting, "sasl.login.connect.timeout.ms"),
        read_timeout_ms=_number(setting, "sasl.login.read.timeout.ms"),
    )
    if is_file:
        return found
    found = found._replace(scope=_text(setting, SCOPE) or options.get("scope", "").strip() or None)
    if retriever == BY_GRANT:
        return found._replace(assertion=_assertion(setting, java_properties), grants=True)
    client_id = _text(setting, CLIENT_ID) or options.get("clientId", "").strip() or None
    # As in Kafka: an assertion goes before a secret, and one that is made has to name its issuer.
    if _text(setting, "sasl.oauthbearer.assertion.file") or _text(setting, ISSUER):
        return found._replace(assertion=_assertion(setting, java_properties), client_id=client_id)
    secret = _text(setting, CLIENT_SECRET) or options.get("clientSecret", "").strip() or None
    for name, value in ((CLIENT_ID, client_id), (CLIENT_SECRET, secret)):
        if value is None:
            raise ConfigError(f"{name} is not set: OAUTHBEARER needs it to get a token")
    return found._replace(
        client_id=client_id, secret=secret, is_encoded=bool(setting(ENCODED_HEADER))
    )


def check_url(setting: str, url: str, java_properties: Mapping[str, str]) -> None:
    """ConfigError for an address that no system property allows: that of a file, too."""
    if not url.startswith((FILE_SCHEME, "https://", "http://")):
        raise ConfigError(f"{setting}={url}: accepted are file:, https:// and http://")
    if url not in listed(java_properties, ALLOWED_URLS):
        raise ConfigError(
            f"{setting}={url} is not allowed; accepted are those of -D{ALLOWED_URLS}= in KAFKA_OPTS"
        )


def tls_options(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Those options of a login module that are for the TLS of the issuer's address."""
    return tuple((name, value) for name, value in options.items() if name.startswith("ssl."))


def path_of(url: str) -> str:
    """The file that a `file:` URL names."""
    return "/" + url.removeprefix(FILE_SCHEME).lstrip("/")


def _assertion(setting: SettingOf, java_properties: Mapping[str, str]) -> AssertionSettings:
    def allowed(name: str) -> str | None:
        path = _text(setting, name)
        if path is None:
            return None
        if str(Path(path).absolute()) not in listed(java_properties, ALLOWED_FILES):
            raise ConfigError(
                f"{name}={path} is not allowed; accepted are those of -D{ALLOWED_FILES}= in "
                "KAFKA_OPTS"
            )
        return path

    file = allowed("sasl.oauthbearer.assertion.file")
    if file is not None:
        return AssertionSettings(file)
    key_file = allowed("sasl.oauthbearer.assertion.private.key.file")
    if key_file is None:
        raise ConfigError(
            "sasl.oauthbearer.assertion.private.key.file is not set: nothing can sign an assertion"
        )
    claims = (
        ("aud", _text(setting, "sasl.oauthbearer.assertion.claim.aud")),
        ("iss", _text(setting, ISSUER)),
        ("sub", _text(setting, "sasl.oauthbearer.assertion.claim.sub")),
    )
    return AssertionSettings(
        key_file=key_file,
        passphrase=_text(setting, "sasl.oauthbearer.assertion.private.key.passphrase"),
        algorithm=str(setting("sasl.oauthbearer.assertion.algorithm")).upper(),
        template_file=allowed("sasl.oauthbearer.assertion.template.file"),
        claims=tuple((name, text) for name, text in claims if text is not None),
        expires_s=int(setting("sasl.oauthbearer.assertion.claim.exp.seconds")),
        not_before_s=int(setting("sasl.oauthbearer.assertion.claim.nbf.seconds")),
        has_id=bool(setting("sasl.oauthbearer.assertion.claim.jti.include")),
    )


def _extensions(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = []
    for option, value in options.items():
        if not option.startswith(EXTENSION):
            continue
        name = option[len(EXTENSION) :]
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name):
            raise ConfigError(f"Extension name {name} is invalid")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise ConfigError(f"Extension value for extension {name} is invalid")
        found.append((name, value))
    return tuple(found)


def _text(setting: SettingOf, name: str) -> str | None:
    value = setting(name)
    return None if value is None else str(value).strip() or None


def _number(setting: SettingOf, name: str) -> int | None:
    value = setting(name)
    return None if value is None else int(value)
