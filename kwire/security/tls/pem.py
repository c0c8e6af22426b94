"""PEM as Kafka reads it: from a file or from a setting, where line ends may have become spaces."""

from __future__ import annotations

import base64
import binascii
import re
import textwrap

from kwire.security.tls.errors import TlsError

_ENTRY = re.compile(
    r"-+BEGIN\s+([^-\r\n]*)-+\s+(?:\s*[^\r\n:]*:[^\r\n]*[\r\n]+)*([a-zA-Z0-9/+=\s]*)-+END\s+\1-+"
)
CERTIFICATE = "CERTIFICATE"
PRIVATE_KEY = "PRIVATE KEY"
KINDS_OF_KEYS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")


def certificates(text: str, what: str) -> list[bytes]:
    """The certificates of a text, DER, in their order; TlsError where there is none."""
    found = [data for label, data in _entries(text, what) if label.endswith(CERTIFICATE)]
    if not found:
        raise TlsError(f"{what}: At least one certificate expected, but none found")
    return found


def private_key(text: str, what: str) -> bytes:
    """The first private key of a text, PEM as OpenSSL reads it; TlsError where there is none."""
    for label, data in _entries(text, what):
        if label.endswith(PRIVATE_KEY):
            if label not in KINDS_OF_KEYS:
                raise TlsError(f"{what}: Private key could not be loaded: a {label}")
            return encoded(label, data)
    raise TlsError(f"{what}: Private key not provided")


def encoded(label: str, data: bytes) -> bytes:
    """One entry as PEM text."""
    body = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 64))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n".encode()


def _entries(text: str, what: str) -> list[tuple[str, bytes]]:
    result = []
    for match in _ENTRY.finditer(text):
        try:
            data = base64.b64decode("".join(match[2].split()), validate=True)
        except (binascii.Error, ValueError):
            raise TlsError(f"{what}: a {match[1].strip()} is no base64") from None
        result.append((match[1].strip(), data))
    return result
