"""Stores of types PKCS12 and JKS; which of them a file is, its first bytes say, as in Java.

PKCS12 is read by `cryptography` (`pip install kwire[tls]`), JKS by `jks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.security.tls import jks
from kwire.security.tls.entries import KeyEntry
from kwire.security.tls.errors import TlsError

if TYPE_CHECKING:
    from cryptography import x509

DER_SEQUENCE = 0x30
EXTRA = "needs the package cryptography: pip install 'kwire[tls]'"


def keys(content: bytes, password: str, key_password: str | None, what: str) -> list[KeyEntry]:
    """The keys of a store in the order of its aliases; TlsError, also where there is none."""
    if jks.is_jks(content):
        found = _keys_of_jks(content, password, key_password, what)
    else:
        found = _keys_of_pkcs12(content, password, what)
    if not found:
        raise TlsError(f"{what} holds no private key")
    return found


def trusted(content: bytes, password: str | None, what: str) -> list[bytes]:
    """The trusted certificates of a store, DER; TlsError, also where there is none."""
    if jks.is_jks(content):
        store = jks.read(content, password, what)
        found = [certificate for _, certificate in store.trusted]
        found += [entry.chain[0] for entry in store.keys if entry.chain]
    else:
        _, certificates = _pkcs12(content, password, what)
        found = certificates
    if not found:
        raise TlsError(f"{what} holds no certificate")
    return found


def _keys_of_jks(
    content: bytes, password: str, key_password: str | None, what: str
) -> list[KeyEntry]:
    store = jks.read(content, password, what)
    return [
        KeyEntry(
            entry.alias,
            entry.decrypted(password if key_password is None else key_password, what),
            None,
            entry.chain,
        )
        for entry in store.keys
    ]


def _keys_of_pkcs12(content: bytes, password: str, what: str) -> list[KeyEntry]:
    entry, _ = _pkcs12(content, password, what)
    return [] if entry is None else [entry]


def _pkcs12(content: bytes, password: str | None, what: str) -> tuple[KeyEntry | None, list[bytes]]:
    """The key with its chain, where there is one, and all certificates."""
    if content[:1] != bytes([DER_SEQUENCE]):
        raise TlsError(f"{what} is neither PKCS12 nor JKS")
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise TlsError(f"{what} is of type PKCS12, which {EXTRA}") from None
    secret = None if password is None else password.encode()
    try:
        store = pkcs12.load_pkcs12(content, secret)
    except (ValueError, TypeError):
        why = "its password is another, or it is damaged"
        raise TlsError(f"{what} cannot be opened: {why}") from None
    encoding = serialization.Encoding
    others = [other.certificate for other in store.additional_certs]
    certificates = [other.public_bytes(encoding.DER) for other in others]
    if store.cert is None:
        return None, certificates
    own = store.cert.certificate
    certificates.insert(0, own.public_bytes(encoding.DER))
    if store.key is None:
        return None, certificates
    key = store.key.private_bytes(
        encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    alias = (store.cert.friendly_name or b"").decode(errors="replace")
    chain = [certificate.public_bytes(encoding.DER) for certificate in _chain(own, others)]
    return KeyEntry(alias, key, None, tuple(chain)), certificates


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """A certificate and those above it, in their order."""
    left = list(others)
    chain = [own]
    while True:
        issuer = chain[-1].issuer
        above = next((one for one in left if one.subject == issuer), None)
        if above is None:
            return chain
        left.remove(above)
        chain.append(above)
