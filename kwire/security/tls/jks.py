"""Java key stores (JKS), read. All numbers are big-endian, a text is its length (uint16) and UTF-8.

    size  what
    4     0xFEEDFEED
    4     version, 1 or 2
    4     number of entries, each of them:
    4         1: a private key, 2: a trusted certificate
              text: alias
    8         when it was made, ms
              of a key: length (4), protected key (a PKCS #8 EncryptedPrivateKeyInfo of Sun's own
              algorithm), number of certificates (4), the certificates
              of version 2 each certificate has a text in front, "X.509"
              a certificate: length (4), DER
    20    SHA-1 of the password (UTF-16), "Mighty Aphrodite", and everything above

A protected key: 20 bytes of salt, the key XOR a stream of SHA-1(password, block before), 20 bytes
SHA-1(password, key). Source: the format is documented by OpenJDK and by Wikipedia's and others'
descriptions of it; measured with Java's keytool.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from kwire.security.tls import der, pem
from kwire.security.tls.errors import TlsError

MAGIC = b"\xfe\xed\xfe\xed"
MAGIC_OF_JCEKS = b"\xce\xce\xce\xce"
WHITENER = b"Mighty Aphrodite"
DIGEST_BYTES = 20
ENTRIES_MAX = 10_000
SUNS_ALGORITHM = "1.3.6.1.4.1.42.2.17.1.1"
KEY, CERTIFICATE = 1, 2


class KeyOfStore(NamedTuple):
    """A key that is still protected, with its certificates, DER."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]

    def decrypted(self, password: str, what: str) -> bytes:
        """The key, PEM; TlsError where it has another password."""
        try:
            (info,) = der.values(self.protected)
            algorithm, data = der.values(info.content)
            name = der.identifier(next(der.values(algorithm.content)).content)
        except ValueError:
            raise TlsError(f"{what}: the key {self.alias} is damaged") from None
        if name != SUNS_ALGORITHM:
            raise TlsError(f"{what}: the key {self.alias} is encrypted by {name}")
        return pem.encoded("PRIVATE KEY", _unprotected(data.content, password, self.alias, what))


class JavaStore(NamedTuple):
    """What a store holds; of a trusted certificate its alias and DER."""

    keys: list[KeyOfStore]
    trusted: list[tuple[str, bytes]]


def is_jks(content: bytes) -> bool:
    """Whether this is a Java store: JKS, or JCEKS, which `read` refuses by its name."""
    return content[:4] in (MAGIC, MAGIC_OF_JCEKS)


def read(content: bytes, password: str | None, what: str) -> JavaStore:
    """The entries of a store; without a password it is not checked, as in Java. TlsError."""
    if content[:4] == MAGIC_OF_JCEKS:
        raise TlsError(f"{what} is of type JCEKS; accepted are PEM, PKCS12 and JKS")
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if password is not None:
        made = hashlib.sha1(password.encode("utf-16-be") + WHITENER + body).digest()
        if not hmac.compare_digest(made, digest):
            raise TlsError(f"{what} cannot be opened: its password is another, or it is damaged")
    try:
        return _Reader(body).store()
    except (struct.error, UnicodeDecodeError, ValueError):
        raise TlsError(f"{what} is damaged") from None


class _Reader:
    """Reads a store from its start; ValueError and struct.error where it is damaged."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 4

    def store(self) -> JavaStore:
        version, count = self._number(), self._number()
        if version not in (1, 2) or count > ENTRIES_MAX:
            raise ValueError("no store of a known version")
        store = JavaStore([], [])
        for _ in range(count):
            kind, alias = self._number(), self._text()
            self._bytes(8)
            if kind == KEY:
                protected = self._sized()
                chain = tuple(self._certificate(version) for _ in range(self._count()))
                store.keys.append(KeyOfStore(alias, protected, chain))
            elif kind == CERTIFICATE:
                store.trusted.append((alias, self._certificate(version)))
            else:
                raise ValueError("an entry of an unknown kind")
        return store

    def _count(self) -> int:
        count = self._number()
        if count > ENTRIES_MAX:
            raise ValueError("too many certificates")
        return count

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._text()
        return self._sized()

    def _number(self) -> int:
        (number,) = struct.unpack_from(">I", self._content, self._at)
        self._at += 4
        return int(number)

    def _sized(self) -> bytes:
        return self._bytes(self._number())

    def _text(self) -> str:
        (length,) = struct.unpack_from(">H", self._content, self._at)
        self._at += 2
        return self._bytes(length).decode()

    def _bytes(self, count: int) -> bytes:
        data = self._content[self._at : self._at + count]
        if len(data) != count:
            raise ValueError("the store ends in an entry")
        self._at += count
        return data


def _unprotected(data: bytes, password: str, alias: str, what: str) -> bytes:
    secret = password.encode("utf-16-be")
    block, hidden, check = (
        data[:DIGEST_BYTES],
        data[DIGEST_BYTES:-DIGEST_BYTES],
        data[-DIGEST_BYTES:],
    )
    stream = bytearray()
    while len(stream) < len(hidden):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(one ^ other for one, other in zip(hidden, stream))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise TlsError(f"{what}: ssl.key.password is not the password of the key {alias}")
    return key
