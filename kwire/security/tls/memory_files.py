"""A private key for OpenSSL, which takes it from a file only: a file that is in memory.

Linux has them (memfd_create): such a file has no name in any directory, and is gone when it is
closed. Elsewhere the key is encrypted with a password of one use first, so that what stands on a
disk for a moment is of no use to anybody (ADR 28).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def load_key(context: ssl.SSLContext, chain: bytes, key: bytes, password: str | None) -> None:
    """Give a context its certificates and key, PEM; `ssl.SSLError` where they do not fit.

    OpenSSL would ask at the terminal for the password of an encrypted key: it is given one always.
    """
    secret = password or ""
    if not hasattr(os, "memfd_create"):
        key, secret = _encrypted(key, password)
    with _file(chain + key) as path:
        context.load_cert_chain(path, password=lambda: secret)


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kwire-key", os.MFD_CLOEXEC)
        try:
            _write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="kwire-")  # readable by its owner alone
    try:
        _write(descriptor, content)
        os.close(descriptor)
        yield path
    finally:
        os.unlink(path)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _encrypted(key: bytes, password: str | None) -> tuple[bytes, str]:
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key, password.encode() if password else None)
    secret = ssl.RAND_bytes(32).hex()
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(secret.encode()),
    ), secret
