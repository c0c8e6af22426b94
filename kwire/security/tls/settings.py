"""The settings of TLS of one listener, or of one client: Kafka's `ssl.` names as a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.config.values import TypedValue

SettingOf = Callable[[str], TypedValue]
"""`setting(name)`: the typed value of an `ssl.` setting, None where Kafka's default is null."""


class KeyStoreSettings(NamedTuple):
    """Where a node's own key and certificates are; None is unset."""

    type: str
    location: str | None
    password: str | None
    key_password: str | None
    key: str | None
    chain: str | None

    def __repr__(self) -> str:
        return f"KeyStoreSettings(type={self.type!r}, location={self.location!r})"


class TrustStoreSettings(NamedTuple):
    """Where the certificates are that a node trusts; None is unset."""

    type: str
    location: str | None
    password: str | None
    certificates: str | None

    def __repr__(self) -> str:
        return f"TrustStoreSettings(type={self.type!r}, location={self.location!r})"


class TlsSettings(NamedTuple):
    """All that contexts are made of. `client_auth` is none, requested or required;
    `endpoint_identification` "https" (in lower case) or empty for not at all."""

    key_store: KeyStoreSettings
    trust_store: TrustStoreSettings
    protocol: str
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    client_auth: str
    endpoint_identification: str

    @classmethod
    def read(cls, setting: SettingOf) -> TlsSettings:
        """The settings as they are now; files are not looked at."""

        def text(name: str) -> str | None:
            value = setting(name)
            return None if value is None else str(value)

        return cls(
            key_store=KeyStoreSettings(
                type=str(setting("ssl.keystore.type")),
                location=text("ssl.keystore.location"),
                password=text("ssl.keystore.password"),
                key_password=text("ssl.key.password"),
                key=text("ssl.keystore.key"),
                chain=text("ssl.keystore.certificate.chain"),
            ),
            trust_store=TrustStoreSettings(
                type=str(setting("ssl.truststore.type")),
                location=text("ssl.truststore.location"),
                password=text("ssl.truststore.password"),
                certificates=text("ssl.truststore.certificates"),
            ),
            protocol=str(setting("ssl.protocol")),
            enabled_protocols=tuple(setting("ssl.enabled.protocols") or ()),
            cipher_suites=tuple(setting("ssl.cipher.suites") or ()),
            client_auth=str(setting("ssl.client.auth") or "none"),
            endpoint_identification=str(
                setting("ssl.endpoint.identification.algorithm") or ""
            ).lower(),
        )
