"""The client's side of SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from tests.support.frames import WireError


class Scram:
    """Client side of SCRAM-SHA-256/512. `nonce_in_final` can be changed to try odd clients."""

    def __init__(self, mechanism: str, user: str, password: str):
        self.h = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.user, self.password = user, password
        self.nonce = base64.b64encode(os.urandom(18)).decode()

    def first(self) -> bytes:
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        self.first_bare = f"n={name},r={self.nonce}"
        return ("n,," + self.first_bare).encode()

    def final(self, server_first: bytes, nonce=None, spoil_proof=False) -> bytes:
        self.server_first = server_first.decode()
        self.parts = dict(p.split("=", 1) for p in self.server_first.split(","))
        assert self.parts["r"].startswith(self.nonce) and len(self.parts["r"]) > len(self.nonce), (
            self.parts
        )
        salt, self.iterations = base64.b64decode(self.parts["s"]), int(self.parts["i"])
        salted = hashlib.pbkdf2_hmac(self.h, self.password.encode(), salt, self.iterations)
        ckey = hmac.digest(salted, b"Client Key", self.h)
        without = (
            "c="
            + base64.b64encode(b"n,,").decode()
            + ",r="
            + (self.parts["r"] if nonce is None else nonce)
        )
        auth = ",".join([self.first_bare, self.server_first, without]).encode()
        sig = hmac.digest(hashlib.new(self.h, ckey).digest(), auth, self.h)
        proof = bytes(a ^ b for a, b in zip(ckey, sig))
        if spoil_proof:
            proof = bytes([proof[0] ^ 1]) + proof[1:]
        self.server_sig = hmac.digest(hmac.digest(salted, b"Server Key", self.h), auth, self.h)
        return (without + ",p=" + base64.b64encode(proof).decode()).encode()

    def verify(self, server_final: bytes):
        want = "v=" + base64.b64encode(self.server_sig).decode()
        if server_final.decode() != want:
            raise WireError(f"server signature {server_final!r}, expected {want!r}")
