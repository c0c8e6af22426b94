"""An assertion: a token that a client signs itself, to show an issuer who it is.

Claims and header lie in three layers, later ones win: those of settings, those of a template file
(`{"header": {...}, "payload": {...}}`), and what this node knows: the algorithm and the times.
Signing is `cryptography`'s (`pip install kwire[oauth]`). Source: RFC 7523, KIP-1139, KIP-1258;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import base64
import json
import uuid

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kwire.security.sasl.jwt import Json, json_object
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_settings import AssertionSettings

ID_BYTES = 16
EC_NUMBER_BYTES = 32


def made_assertion(
    settings: AssertionSettings, key: bytes, template: bytes | None, wall_ms: int, id_bytes: bytes
) -> str:
    """An assertion by the contents of the settings' files; `id_bytes` are 16, never used before.
    InvalidTokenError, of which no part is secret."""
    header: dict[str, Json] = {}
    claims: dict[str, Json] = dict(settings.claims)
    if template is not None:
        layers = json_object(template)
        for name, layer in (("header", header), ("payload", claims)):
            part = layers.get(name, {})
            if not isinstance(part, dict):
                raise InvalidTokenError(f"{name} of the template is no object")
            layer.update(part)
    now_s = wall_ms // 1000
    header.update(alg=settings.algorithm, typ="JWT")
    claims.update(iat=now_s, exp=now_s + settings.expires_s, nbf=now_s - settings.not_before_s)
    if settings.has_id:
        claims["jti"] = str(uuid.UUID(bytes=id_bytes, version=4))
    signed = f"{_part(header)}.{_part(claims)}"
    return f"{signed}.{_encoded(_signature(settings, key, signed.encode()))}"


def _signature(settings: AssertionSettings, key: bytes, data: bytes) -> bytes:
    password = settings.passphrase.encode() if settings.passphrase else None
    try:
        private = load_pem_private_key(key, password)
    except (ValueError, TypeError):  # the second: a passphrase too many, or none
        raise InvalidTokenError("the private key cannot be read") from None
    if settings.algorithm == "RS256" and isinstance(private, rsa.RSAPrivateKey):
        return private.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if settings.algorithm == "ES256" and isinstance(private, ec.EllipticCurvePrivateKey):
        if not isinstance(private.curve, ec.SECP256R1):
            raise InvalidTokenError("ES256 needs a private key of P-256")
        r, s = decode_dss_signature(private.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(EC_NUMBER_BYTES, "big") + s.to_bytes(EC_NUMBER_BYTES, "big")
    raise InvalidTokenError(f"the private key is none of {settings.algorithm}")


def _part(value: dict[str, Json]) -> str:
    return _encoded(json.dumps(value, separators=(",", ":")).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
