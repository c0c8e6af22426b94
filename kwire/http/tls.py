"""TLS of HTTP listeners: the broker's `ssl.*` settings, as Kafka's listeners have them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from kwire.config.definitions import BROKER
from kwire.config.values import TypedValue
from kwire.security.tls.contexts import Material, server_context
from kwire.security.tls.settings import TlsSettings


def server_tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """What a listener with these settings accepts with; ConfigError, one line, also without a
    key."""

    def setting(name: str) -> TypedValue:
        definition = BROKER[name]
        text = settings.get(name)
        return definition.default if text is None else definition.parse(text)

    read = TlsSettings.read(setting)
    return server_context(read, Material.load(read))
