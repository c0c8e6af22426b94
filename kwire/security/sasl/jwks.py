"""The keys of an issuer of tokens (JWKS), and the check of a signature with them.

An algorithm goes with one kind of key, and only signatures of two keys are known: `none`, and HMACs
with what is public (the confusion of RS256 and HS256), are refused whatever the token says. The
arithmetic is `cryptography`'s (`pip install kwire[oauth]`). Source: RFC 7517, RFC 7518.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kwire.security.sasl.jwt import Json, Jws, Object, decoded, json_object
from kwire.security.sasl.oauthbearer import InvalidTokenError

JWKS_BYTES_MAX = 1 << 20
KEYS_MAX = 100
RSA_BITS_MIN = 2048
RSA_BITS_MAX = 8192

_HASHES: dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: dict[str, tuple[str, Callable[[], ec.EllipticCurve], int]] = {
    "ES256": ("P-256", ec.SECP256R1, 32),
    "ES384": ("P-384", ec.SECP384R1, 48),
    "ES512": ("P-521", ec.SECP521R1, 66),
}
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *_CURVES,
)


class Key(NamedTuple):
    """One public key: what it is called, what it is for."""

    kid: str | None
    algorithm: str | None
    public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    curve: str | None = None


class Keys:
    """The keys of a JWKS document, by `kid`."""

    def __init__(self, data: bytes) -> None:
        """InvalidTokenError for what is no JWKS, or has no key that can be used."""
        if len(data) > JWKS_BYTES_MAX:
            raise InvalidTokenError(f"a JWKS of more than {JWKS_BYTES_MAX} bytes")
        entries = json_object(data).get("keys")
        if not isinstance(entries, list):
            raise InvalidTokenError("a JWKS without keys")
        if len(entries) > KEYS_MAX:
            raise InvalidTokenError(f"a JWKS of more than {KEYS_MAX} keys")
        made = [_key(entry) for entry in entries if isinstance(entry, dict)]
        self._keys = [key for key in made if key is not None]
        if not self._keys:
            raise InvalidTokenError("a JWKS without a key that can be used")

    def knows(self, kid: Json) -> bool:
        """Whether there is a key of that name."""
        return any(key.kid == kid for key in self._keys)

    def verify(self, jws: Jws) -> None:
        """InvalidTokenError unless one of the keys has signed it."""
        header = jws.header
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidTokenError("an algorithm that is not accepted")
        if "crit" in header:
            raise InvalidTokenError("a header that has to be understood, and is not")
        candidates = [
            key for key in self._keys if (kid is None or key.kid == kid) and _fits(key, algorithm)
        ]
        if not any(_is_signed(key, algorithm, jws) for key in candidates):
            raise InvalidTokenError("not signed by a known key")


def _fits(key: Key, algorithm: str) -> bool:
    if key.algorithm is not None and key.algorithm != algorithm:
        return False
    if algorithm.startswith("ES"):
        return key.curve == _CURVES[algorithm][0]
    return isinstance(key.public, rsa.RSAPublicKey)


def _is_signed(key: Key, algorithm: str, jws: Jws) -> bool:
    digest = _HASHES[algorithm[2:]]()
    try:
        if isinstance(key.public, rsa.RSAPublicKey):
            scheme = (
                padding.PKCS1v15()
                if algorithm.startswith("RS")
                else padding.PSS(padding.MGF1(digest), digest.digest_size)
            )
            key.public.verify(jws.signature, jws.signed, scheme, digest)
        else:
            size = _CURVES[algorithm][2]
            if len(jws.signature) != 2 * size:
                return False
            halves = jws.signature[:size], jws.signature[size:]
            r, s = (int.from_bytes(half, "big") for half in halves)
            key.public.verify(encode_dss_signature(r, s), jws.signed, ec.ECDSA(digest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _key(entry: Object) -> Key | None:
    """None for a key of a kind, or for a use, that is not known here."""
    if entry.get("use") not in (None, "sig"):
        return None
    kid, algorithm = entry.get("kid"), entry.get("alg")
    names = (
        kid if isinstance(kid, str) else None,
        algorithm if isinstance(algorithm, str) else None,
    )
    try:
        if entry.get("kty") == "RSA":
            public = rsa.RSAPublicNumbers(_number(entry, "e"), _number(entry, "n")).public_key()
            return Key(*names, public) if RSA_BITS_MIN <= public.key_size <= RSA_BITS_MAX else None
        if entry.get("kty") == "EC":
            curve = entry.get("crv")
            for name, make, _ in _CURVES.values():
                if curve == name:
                    numbers = ec.EllipticCurvePublicNumbers(
                        _number(entry, "x"), _number(entry, "y"), make()
                    )
                    return Key(*names, numbers.public_key(), name)
    except (ValueError, InvalidTokenError):
        return None
    return None


def _number(entry: Object, name: str) -> int:
    text = entry.get(name)
    if not isinstance(text, str):
        raise InvalidTokenError(f"no {name}")
    return int.from_bytes(decoded(text), "big")
