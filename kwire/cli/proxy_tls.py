"""`kwire proxy --tls-cert FILE --tls-key FILE`: TLS from clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.client.errors import ClientError

if TYPE_CHECKING:
    import ssl


def tls_of(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """What clients are shown, from two PEM files that may be one; None without any. ClientError
    names the option that is wrong."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-cert" if certificate is None else "--tls-key"
        raise ClientError(f"{missing} is missing: --tls-cert and --tls-key belong together")
    from kwire.config.definitions import BROKER
    from kwire.config.errors import ConfigError
    from kwire.config.values import TypedValue
    from kwire.security.tls.contexts import Material, server_context
    from kwire.security.tls.settings import TlsSettings

    given: dict[str, TypedValue] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _read("--tls-cert", certificate),
        "ssl.keystore.key": _read("--tls-key", key),
    }
    settings = TlsSettings.read(lambda name: given.get(name, BROKER[name].default))
    try:
        return server_context(settings, Material.load(settings))
    except ConfigError as error:
        raise ClientError(f"--tls-cert {certificate}, --tls-key {key}: {error}") from None


def _read(option: str, path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise ClientError(f"{option} {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ClientError(f"{option} {path}: no PEM file") from None
