"""TLS out of the broker's `ssl.*` settings, as its listeners have it, and of callers' logins."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

from kwire.config.definitions import BROKER
from kwire.config.values import TypedValue
from kwire.security.tls.contexts import Material, server_context
from kwire.security.tls.settings import SettingOf, TlsSettings


def check_tls(settings: Mapping[str, str]) -> None:
    """Whether a listener can accept with these settings; ConfigError, one line, also without a
    key."""
    read = TlsSettings.read(setting_of(settings))
    server_context(read, Material.load(read))


def setting_of(settings: Mapping[str, str]) -> SettingOf:
    """Typed values of settings that are texts."""

    def setting(name: str) -> TypedValue:
        definition = BROKER[name]
        text = settings.get(name)
        return definition.default if text is None else definition.parse(text)

    return setting


def trusting(certificates: Sequence[bytes]) -> ssl.SSLContext:
    """For connections to whoever has one of these certificates (DER), and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False  # it is known by its very certificate
    context.load_verify_locations(cadata=b"".join(dict.fromkeys(certificates)))
    return context
