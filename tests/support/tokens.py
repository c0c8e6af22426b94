"""An issuer of signed tokens for tests: RS256, one key at a time."""

from __future__ import annotations

import base64
import json
import time

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

LIFE_S = 600
MODULUS_BYTES = 256


def b64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs tokens; `jwks` are its keys as a JSON Web Key Set."""

    def __init__(self) -> None:
        self.turn()

    def turn(self) -> None:
        """Another key."""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=8 * MODULUS_BYTES)
        modulus = b64(self._key.public_key().public_numbers().n.to_bytes(MODULUS_BYTES, "big"))
        self.kid = modulus[:12]
        key = {"kty": "RSA", "kid": self.kid, "n": modulus, "e": "AQAB"}
        self.jwks = json.dumps({"keys": [key]}).encode()

    def token(self, **claims: object) -> str:
        """A token of alice for the audience kwire, unless the claims say otherwise."""
        now = int(time.time())
        all_claims = {"sub": "alice", "iat": now, "exp": now + LIFE_S, "aud": "kwire", **claims}
        head = {"alg": "RS256", "kid": self.kid}
        text = ".".join(b64(json.dumps(each).encode()) for each in (head, all_claims))
        return f"{text}.{b64(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
