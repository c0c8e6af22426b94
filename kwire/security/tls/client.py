"""TLS of a client: Kafka's client properties, such as those of `--command-config`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from kwire.config.definitions import BROKER
from kwire.config.errors import ConfigError
from kwire.config.listeners import CLIENT_PROTOCOL, WITH_TLS
from kwire.config.values import TypedValue, to_text
from kwire.security.tls.contexts import Material, client_context
from kwire.security.tls.settings import TlsSettings


def client_tls(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """What the client of these properties connects with; None where its protocol has no TLS.

    ConfigError, one line, for what cannot be used.
    """
    if properties.get(CLIENT_PROTOCOL, "PLAINTEXT").strip().upper() not in WITH_TLS:
        return None
    return context_of(properties)


def context_of(properties: Mapping[str, str]) -> ssl.SSLContext:
    """What the `ssl.` properties of a client say; ConfigError."""

    def setting(name: str) -> TypedValue:
        definition = BROKER[name]  # clients have the names, types and defaults of brokers
        text = properties.get(name)
        return definition.default if text is None else definition.parse(text)

    for name in properties:
        if not name.startswith("ssl.") or name not in BROKER:
            continue
        definition = BROKER[name]
        if definition.support == "refused" and setting(name) != definition.default:
            raise ConfigError(
                f"{name} is refused: {definition.note}; accepted: "
                + (to_text(definition.default) or "nothing (leave it out)")
            )
    settings = TlsSettings.read(setting)
    return client_context(settings, Material.load(settings))
