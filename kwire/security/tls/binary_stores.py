"""Stores of types PKCS12 and JKS; which of them a file is, its first bytes say, as in Java.

JKS is read by `jks`, PKCS12 by `cryptography` (`pip install kwire[tls]`). Of a store's keys
`cryptography` gives the first; where the others are is read here:

    PFX ::= SEQUENCE { version, ContentInfo of an OCTET STRING: SEQUENCE OF ContentInfo, mac }
    a ContentInfo of keys ::= SEQUENCE { OBJECT IDENTIFIER data, [0] OCTET STRING:
        SEQUENCE OF SEQUENCE { OBJECT IDENTIFIER kind, [0] a PKCS #8 key, attributes } }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kwire.security.tls import der, jks
from kwire.security.tls.entries import KeyEntry
from kwire.security.tls.errors import TlsError

if TYPE_CHECKING:
    from cryptography import x509

DER_SEQUENCE = 0x30
DATA = "1.2.840.113549.1.7.1"
KEY_BAG, ENCRYPTED_KEY_BAG = "1.2.840.113549.1.12.10.1.1", "1.2.840.113549.1.12.10.1.2"
EXTRA = "needs the package cryptography: pip install 'kwire[tls]'"


def keys(content: bytes, password: str, key_password: str | None, what: str) -> list[KeyEntry]:
    """The keys of a store in the order of its entries; TlsError, also where there is none.

    Keys in PKCS12 have the store's password, as with Java's keytool.
    """
    if jks.is_jks(content):
        found = _keys_of_jks(content, password, key_password, what)
    else:
        found = _pkcs12(content, password, what).entries
        if key_password not in (None, password):
            raise TlsError(
                f"{what}: ssl.key.password is not the password of its key, which is the store's"
            )
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
        found = _pkcs12(content, password, what).trusted
    if not found:
        raise TlsError(f"{what} holds no certificate")
    return found


def _keys_of_jks(
    content: bytes, password: str, key_password: str | None, what: str
) -> list[KeyEntry]:
    store = jks.read(content, password, what)
    secret = password if key_password is None else key_password
    return [
        KeyEntry(entry.alias, entry.decrypted(secret, what), None, entry.chain)
        for entry in store.keys
    ]


class _Pkcs12(NamedTuple):
    """Keys with their chains, and certificates that belong to no key, with the keys' own."""

    entries: list[KeyEntry]
    trusted: list[bytes]


def _pkcs12(content: bytes, password: str | None, what: str) -> _Pkcs12:
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
        others = [serialization.load_der_private_key(*key) for key in _keys_in(content, secret)]
    except (ValueError, TypeError):
        why = "its password is another, or it is damaged"
        raise TlsError(f"{what} cannot be opened: {why}") from None
    named = {} if store.cert is None else {store.cert.certificate: store.cert.friendly_name}
    named |= {other.certificate: other.friendly_name for other in store.additional_certs}
    encoding, public = serialization.Encoding, serialization.PublicFormat.SubjectPublicKeyInfo
    own = {one.public_key().public_bytes(encoding.DER, public): one for one in reversed(named)}
    entries, chained = [], []
    for key in others or ([] if store.key is None else [store.key]):
        certificate = own.get(key.public_key().public_bytes(encoding.DER, public))
        if certificate is None:
            continue
        pem = key.private_bytes(
            encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = _chain(certificate, list(named))
        alias = (named[certificate] or b"").decode(errors="replace")
        ders = tuple(one.public_bytes(encoding.DER) for one in chain)
        entries.append(KeyEntry(alias, pem, None, ders))
        chained += chain[1:]
    free = [one.public_bytes(encoding.DER) for one in named if one not in chained]
    return _Pkcs12(entries, free)


def _keys_in(content: bytes, secret: bytes | None) -> list[tuple[bytes, bytes | None]]:
    """Every key, with the password where it has one; none where the file is written another way
    than Java and OpenSSL write it."""
    try:
        return list(_key_bags(content, secret))
    except (ValueError, StopIteration):
        return []


def _key_bags(content: bytes, secret: bytes | None) -> Iterator[tuple[bytes, bytes | None]]:
    _, safe, *_ = der.values(next(der.values(content)).content)
    for info in _explicit_sequence(safe):
        kind, *_ = der.values(info.content)
        if der.identifier(kind.content) != DATA:
            continue
        for bag in _explicit_sequence(info):
            kind, value, *_ = der.values(bag.content)
            name = der.identifier(kind.content)
            if name in (KEY_BAG, ENCRYPTED_KEY_BAG):
                yield value.content, secret if name == ENCRYPTED_KEY_BAG else None


def _explicit_sequence(info: der.Value) -> list[der.Value]:
    """The values of the sequence that is in the octets of a ContentInfo."""
    _, explicit, *_ = der.values(info.content)
    octets = next(der.values(explicit.content))
    return list(der.values(next(der.values(octets.content)).content))


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """A certificate and those above it, in their order."""
    chain = [own]
    while True:
        issuer = chain[-1].issuer
        above = next((one for one in others if one.subject == issuer and one not in chain), None)
        if above is None or chain[-1].subject == issuer:
            return chain
        chain.append(above)
