"""How a client of these properties (`--command-config`) connects: TLS, a login, both or neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.config.listeners import CLIENT_PROTOCOL, PROTOCOLS, WITH_SASL
from kwire.config.values import TypedValue

if TYPE_CHECKING:
    import ssl

    from kwire.security.sasl.client_settings import MakeLogin
    from kwire.security.token_login import TokenLogin


class ClientSecurity(NamedTuple):
    """`login()` gives one connection's login, `tls` is the context of all; None where there is
    none. With `tokens` a login needs a token, which is got before where one is due."""

    login: MakeLogin | None = None
    tls: ssl.SSLContext | None = None
    tokens: TokenLogin | None = None


def client_security(
    properties: Mapping[str, str], random: Random, wall_ms: Callable[[], int]
) -> ClientSecurity:
    """See the module; ConfigError, one line, for what cannot be used."""
    protocol = properties.get(CLIENT_PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"{CLIENT_PROTOCOL}={protocol} is refused; accepted: {', '.join(PROTOCOLS)}"
        )
    if protocol == "PLAINTEXT":
        return ClientSecurity()
    from kwire.security.sasl.client_settings import client_login
    from kwire.security.tls.client import client_tls

    tokens = client_tokens(properties, random, wall_ms)
    if tokens is not None:
        return ClientSecurity(tokens, client_tls(properties), tokens)
    return ClientSecurity(client_login(properties, random, wall_ms), client_tls(properties))


def client_tokens(
    properties: Mapping[str, str], random: Random, wall_ms: Callable[[], int]
) -> TokenLogin | None:
    """The login by tokens of an issuer, where these properties ask for it; ConfigError. What the
    issuer may be is said by KAFKA_OPTS, as for Kafka's own clients."""
    from kwire.config.definitions import BROKER
    from kwire.config.java_properties import java_properties
    from kwire.security.sasl.client_settings import MECHANISM
    from kwire.security.sasl.mechanisms import OAUTHBEARER
    from kwire.security.sasl.settings import JAAS, one_module
    from kwire.security.sasl.token_settings import (
        ENCODED_HEADER,
        RefreshSettings,
        gets_tokens,
        token_settings,
    )
    from kwire.security.token_login import TokenLogin

    def setting(name: str) -> TypedValue:
        text = properties.get(name)
        if name == ENCODED_HEADER:  # clients alone have it
            return text is not None and text.strip().lower() == "true"
        definition = BROKER[name]  # for the others the names, types and defaults of brokers
        return definition.default if text is None else definition.parse(text)

    has_sasl = properties.get(CLIENT_PROTOCOL, "").strip().upper() in WITH_SASL
    if not has_sasl or properties.get(MECHANISM, "").strip() != OAUTHBEARER:
        return None
    if not gets_tokens(setting):
        return None
    text = properties.get(JAAS)
    if text is None:
        raise ConfigError(f"{JAAS} is not set; {MECHANISM}={OAUTHBEARER} needs it")
    module = one_module(JAAS, text, OAUTHBEARER)
    allowed = java_properties(os.environ, {})
    settings = token_settings(setting, module.options, allowed)
    return TokenLogin(settings, lambda: RefreshSettings.read(setting), random, wall_ms)
