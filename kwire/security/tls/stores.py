"""Key stores and trust stores: from settings to keys and certificates.

Kafka's rules of what may be set together, in its words (measured on Apache Kafka 4.4). Types are
PEM, PKCS12 and JKS; as in Java a store of either of the latter types opens either format.
"""

from __future__ import annotations

from kwire.security.tls import pem
from kwire.security.tls.entries import KeyEntry
from kwire.security.tls.errors import TlsError
from kwire.security.tls.settings import KeyStoreSettings, TrustStoreSettings

STORE_BYTES_MAX = 16 * 1024 * 1024
PEM = "PEM"
BINARY_TYPES = ("JKS", "PKCS12")


def load_key_store(settings: KeyStoreSettings) -> list[KeyEntry]:
    """The keys of a store, empty where none is set; TlsError."""
    _check_key_store(settings)
    if settings.key is None and settings.location is None:
        return []
    try:
        return _keys(settings)
    except TlsError as error:
        error.kafka = failed_to_load(settings.type, settings.location, "keystore")
        raise


def _keys(settings: KeyStoreSettings) -> list[KeyEntry]:
    if settings.location is None:
        key = pem.private_key(settings.key or "", "ssl.keystore.key")
        chain = pem.certificates(settings.chain or "", "ssl.keystore.certificate.chain")
        return [KeyEntry("kafka", key, settings.key_password, tuple(chain))]
    what = f"key store {settings.location}"
    _check_type(settings.type, "ssl.keystore.type")
    content = read_store(settings.location, what)
    if settings.type == PEM:
        text = _text(content, what)
        key, chain = pem.private_key(text, what), pem.certificates(text, what)
        return [KeyEntry("kafka", key, settings.key_password, tuple(chain))]
    from kwire.security.tls.binary_stores import keys

    return keys(content, settings.password or "", settings.key_password, what)


def load_trust_store(settings: TrustStoreSettings) -> list[bytes] | None:
    """The trusted certificates, DER; None where no store is set: those of this machine count."""
    _check_trust_store(settings)
    if settings.certificates is None and settings.location is None:
        return None
    try:
        return _trusted(settings)
    except TlsError as error:
        error.kafka = failed_to_load(settings.type, settings.location, "truststore")
        raise


def _trusted(settings: TrustStoreSettings) -> list[bytes]:
    if settings.location is None:
        return pem.certificates(settings.certificates or "", "ssl.truststore.certificates")
    what = f"trust store {settings.location}"
    _check_type(settings.type, "ssl.truststore.type")
    content = read_store(settings.location, what)
    if settings.type == PEM:
        return pem.certificates(_text(content, what), what)
    from kwire.security.tls.binary_stores import trusted

    return trusted(content, settings.password, what)


def failed_to_load(store_type: str, location: str | None, kind: str) -> str:
    """Kafka's words for a store that cannot be loaded."""
    if location is None:
        return f"Invalid PEM {kind} configs"
    if store_type == PEM:
        return f"Failed to load PEM SSL keystore {location}"
    return f"Failed to load SSL keystore {location} of type {store_type}"


def read_store(path: str, what: str) -> bytes:
    """The content of a store's file; TlsError."""
    try:
        with open(path, "rb") as file:
            content = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise TlsError(f"{what} cannot be read: {error.strerror or error}") from None
    if len(content) > STORE_BYTES_MAX:
        raise TlsError(f"{what} is larger than {STORE_BYTES_MAX} bytes")
    return content


def _text(content: bytes, what: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise TlsError(f"{what} is no PEM file") from None


def _check_key_store(settings: KeyStoreSettings) -> None:
    if settings.key is not None:
        if settings.type != PEM:
            raise TlsError(
                "SSL private key can be specified only for PEM, but key store type is "
                f"{settings.type}."
            )
        if settings.chain is None:
            raise TlsError("SSL private key is specified, but certificate chain is not specified.")
        if settings.location is not None:
            raise TlsError("Both SSL key store location and separate private key are specified.")
        if settings.password is not None:
            raise TlsError(
                "SSL key store password cannot be specified with PEM format, only key password "
                "may be specified."
            )
    elif settings.chain is not None:
        raise TlsError("SSL certificate chain is specified, but private key is not specified")
    elif settings.type == PEM and settings.location is not None:
        if settings.password is not None:
            raise TlsError(
                "SSL key store password cannot be specified with PEM format, only key password "
                "may be specified"
            )
    elif settings.location is None and settings.password is not None:
        raise TlsError("SSL key store is not specified, but key store password is specified.")
    elif settings.location is not None and settings.password is None:
        raise TlsError("SSL key store is specified, but key store password is not specified.")


def _check_trust_store(settings: TrustStoreSettings) -> None:
    if settings.certificates is not None:
        if settings.type != PEM:
            raise TlsError(
                "SSL trust store certs can be specified only for PEM, but trust store type is "
                f"{settings.type}."
            )
        if settings.location is not None:
            raise TlsError(
                "Both SSL trust store location and separate trust certificates are specified."
            )
        if settings.password is not None:
            raise TlsError("SSL trust store password cannot be specified for PEM format.")
    elif settings.type == PEM and settings.location is not None:
        if settings.password is not None:
            raise TlsError("SSL trust store password cannot be specified for PEM format.")
    elif settings.location is None and settings.password is not None:
        raise TlsError("SSL trust store is not specified, but trust store password is specified.")


def _check_type(store_type: str, name: str) -> None:
    if store_type != PEM and store_type.upper() not in BINARY_TYPES:
        raise TlsError(
            f"Invalid value {store_type} for configuration {name}: accepted are PEM, PKCS12 and JKS"
        )
