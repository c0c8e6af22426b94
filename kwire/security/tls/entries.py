"""What a key store holds."""

from __future__ import annotations

from typing import NamedTuple


class KeyEntry(NamedTuple):
    """A key with its certificates: PEM, the password of the key where it is encrypted; DER, the
    node's own certificate first."""

    alias: str
    key: bytes
    key_password: str | None
    chain: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"KeyEntry(alias={self.alias!r}, {len(self.chain)} certificates)"
