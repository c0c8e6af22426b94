"""An issuer of tokens for tests: it signs them, and has one key at a time."""

from __future__ import annotations

import base64
import json
import time

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs tokens, and has one key at a time."""

    def __init__(self) -> None:
        self.turn()

    def turn(self) -> None:
        """Another key."""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        self.kid = b64(numbers.n.to_bytes(256, "big"))[:12]
        key = {"kty": "RSA", "kid": self.kid, "n": b64(numbers.n.to_bytes(256, "big"))}
        self.jwks = json.dumps({"keys": [{**key, "e": "AQAB"}]}).encode()

    @property
    def now_s(self) -> int:
        return int(time.time())

    def token(self, **claims: object) -> str:
        now = self.now_s
        all_claims = {"sub": "alice", "iat": now, "exp": now + 600, "aud": "kwire", **claims}
        head = {"alg": "RS256", "kid": self.kid}
        text = ".".join(b64(json.dumps(each).encode()) for each in (head, all_claims))
        return f"{text}.{b64(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
