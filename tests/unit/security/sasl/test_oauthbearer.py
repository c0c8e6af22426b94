"""OAUTHBEARER: messages, claims, signatures, and what attackers send."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from functools import partial
from typing import Any

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from kwire.security.sasl.jwks import JWKS_BYTES_MAX, KEYS_MAX, Keys
from kwire.security.sasl.jwt import Rules, validate_signed, validate_unsecured
from kwire.security.sasl.mechanisms import AuthenticationFailed, Identity
from kwire.security.sasl.oauthbearer import (
    INVALID_TOKEN,
    Accepted,
    InvalidTokenError,
    OAuthBearerServer,
)

NOW_MS = 1_000_000_000
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": 999_990, "exp": 1_000_600}
RULES = Rules(("kwire",), "https://issuer", 30_000)
SIGNED = {**CLAIMS, "iss": "https://issuer", "aud": "kwire"}

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int) -> str:
    return b64(value.to_bytes(size, "big"))


def part(value: object) -> str:
    return b64(json.dumps(value).encode())


def unsecured(header: object = {"alg": "none"}, signature: str = "", **claims: Any) -> str:
    return f"{part(header)}.{part({**CLAIMS, **claims})}.{signature}"


def rsa_jwk(key: rsa.RSAPrivateKey = RSA_KEY, **more: Any) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": "r", "n": number(numbers.n, 256), "e": "AQAB", **more}


def ec_jwk() -> dict[str, Any]:
    numbers = EC_KEY.public_key().public_numbers()
    point = {"x": number(numbers.x, 32), "y": number(numbers.y, 32)}
    return {"kty": "EC", "kid": "e", "crv": "P-256", **point}


KEYS = Keys(json.dumps({"keys": [rsa_jwk(), ec_jwk()]}).encode())


def signed(
    claims: dict[str, Any] = SIGNED,
    algorithm: str = "RS256",
    key: rsa.RSAPrivateKey = RSA_KEY,
    **header: Any,
) -> str:
    is_ec = algorithm == "ES256"
    head = {"alg": algorithm, "kid": "e" if is_ec else "r", **header}
    text = f"{part(head)}.{part(claims)}"
    digest = hashes.SHA256()
    if is_ec:
        r, s = decode_dss_signature(EC_KEY.sign(text.encode(), ec.ECDSA(digest)))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    elif algorithm == "PS256":
        scheme = padding.PSS(padding.MGF1(digest), digest.digest_size)
        signature = key.sign(text.encode(), scheme, digest)
    else:
        signature = key.sign(text.encode(), padding.PKCS1v15(), digest)
    return f"{text}.{b64(signature)}"


def accepted(token: str, rules: Rules = RULES, keys: Keys = KEYS) -> Accepted:
    return validate_signed(token, NOW_MS, rules, keys.verify)


# -- messages


def server() -> OAuthBearerServer:
    return OAuthBearerServer(partial(validate_unsecured, rules=Rules(needs_issued_at=False)))


def message(token: str, authzid: str = "", more: str = "") -> bytes:
    return f"n,{authzid},\x01auth=Bearer {token}\x01{more}\x01".encode()


@pytest.mark.parametrize(
    ("authzid", "more"), [("", ""), ("a=alice", ""), ("", "traceId=1\x01other=x y\x01")]
)
def test_a_good_token(authzid: str, more: str) -> None:
    answer = server().evaluate(message(unsecured(), authzid, more), NOW_MS)
    assert answer == (b"", Identity("User:alice", False, 1_000_600_000))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"garbage", b"n,,\x01\x01", b"n,,auth=Bearer x", b"n,,\x01auth=x\x01\x01"),
        *(b"y,,\x01auth=Bearer x\x01\x01", b"n,,\x01auth=Basic x\x01\x01"),
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * (1 << 17) + b"\x01\x01",
    ],
)
def test_what_is_no_message_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as error:
        server().evaluate(data, NOW_MS)
    assert error.value.message is None


def test_a_bad_token_takes_two_rounds() -> None:
    for second, told in ((b"\x01", INVALID_TOKEN.decode()), (b"x", None), (b"", None)):
        machine = server()
        assert machine.evaluate(message("bad"), NOW_MS) == (INVALID_TOKEN, None)
        with pytest.raises(AuthenticationFailed) as error:
            machine.evaluate(second, NOW_MS)
        assert error.value.message == told


def test_a_bad_token_is_not_followed_by_a_good_one() -> None:
    machine = server()
    machine.evaluate(message("bad"), NOW_MS)
    with pytest.raises(AuthenticationFailed):
        machine.evaluate(message(unsecured()), NOW_MS)


def test_nobody_is_somebody_else() -> None:
    with pytest.raises(AuthenticationFailed, match=r"\(bob\) that is different"):
        server().evaluate(message(unsecured(), "a=bob"), NOW_MS)


@pytest.mark.parametrize(
    "token",
    [
        *("bad", "a.b.c", "a.b", "....", "e30.e30.", unsecured({}), unsecured(signature="abcd")),
        *(unsecured({"alg": "RS256"}), unsecured({"alg": "None"}), unsecured({"alg": ["none"]})),
        *(unsecured(exp=None), unsecured(exp="x"), unsecured(exp=True), unsecured(exp=1e400)),
        *(unsecured(exp=-1), unsecured(exp=999_999), unsecured(iat=1_000_900), unsecured(sub="")),
        *(unsecured(sub=" "), unsecured(sub=5), unsecured(sub=None), unsecured(scope={"a": 1})),
        *(unsecured(nbf=1_000_900), unsecured().removesuffix(".")),
        *(unsecured(exp=10**400), unsecured(nbf=10**400), unsecured(iat=-(10**400))),
        *(unsecured(exp=float("nan")), unsecured(exp=float("inf")), unsecured(sub="\ud800")),
        f"{part({'alg': 'none'})}.{b64(b'[' * 100_000)}.",
        f"{part({'alg': 'none'})}.{b64(b'NaN')}.",
    ],
)
def test_unsecured_tokens_that_are_refused(token: str) -> None:
    with pytest.raises(InvalidTokenError):
        validate_unsecured(token, NOW_MS, Rules(needs_issued_at=False))


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=60))
def test_any_text_is_refused_as_a_token(text: str) -> None:
    for validate in (partial(validate_unsecured, rules=Rules()), partial(accepted)):
        with pytest.raises(InvalidTokenError):
            validate(text, wall_ms=NOW_MS) if "rules" in validate.keywords else validate(text)


# -- signatures


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
def test_a_signed_token(algorithm: str) -> None:
    assert accepted(signed(algorithm=algorithm)) == Accepted("alice", 1_000_600_000)


def test_claims_of_a_signed_token() -> None:
    assert accepted(signed({**SIGNED, "aud": ["other", "kwire"]})).name == "alice"
    assert accepted(signed({**SIGNED, "exp": 999_980})).name == "alice"  # within the skew
    named = Rules(subject_claim="client", audiences=None, issuer=None)
    assert accepted(signed({**CLAIMS, "client": "app"}), named).name == "app"
    for wrong in (
        *({"exp": 999_969}, {"iss": "https://other"}, {"iss": None}, {"aud": "other"}),
        *({"aud": None}, {"aud": []}, {"aud": {"kwire": 1}}, {"iat": None}, {"sub": ""}),
        *({"iat": 1_000_031}, {"nbf": 1_000_031}),
    ):
        with pytest.raises(InvalidTokenError):
            accepted(signed({**SIGNED, **wrong}))


def test_alg_none_is_no_signature() -> None:
    for algorithm in ("none", "None", "NONE", ""):
        token = f"{part({'alg': algorithm, 'kid': 'r'})}.{part(SIGNED)}."
        with pytest.raises(InvalidTokenError, match="not accepted"):
            accepted(token)


def test_the_public_key_is_no_secret_of_an_hmac() -> None:
    """The confusion of RS256 with HS256."""
    pem = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    text = f"{part({'alg': 'HS256', 'kid': 'r'})}.{part(SIGNED)}"
    token = f"{text}.{b64(hmac.new(pem, text.encode(), hashlib.sha256).digest())}"
    with pytest.raises(InvalidTokenError, match="not accepted"):
        accepted(token)


def test_keys_in_the_token_are_not_looked_at() -> None:
    own = rsa_jwk(OTHER_KEY)
    for header in ({"jwk": own}, {"jku": "https://attacker/keys"}, {"x5u": "https://attacker"}):
        with pytest.raises(InvalidTokenError, match="known key"):
            accepted(signed(key=OTHER_KEY, **header))


def test_another_key_or_another_text_is_no_signature() -> None:
    token = signed()
    head, claims, signature = token.split(".")
    forged = part({**SIGNED, "sub": "admin"})
    for wrong in (
        *(signed(key=OTHER_KEY), f"{head}.{forged}.{signature}", f"{head}.{claims}."),
        *(signed(kid="e"), signed(kid="unknown"), signed(kid=5), signed(crit=["x"])),
        f"{part({'alg': 'ES256', 'kid': 'e'})}.{claims}.{b64(bytes(64))}",
        f"{part({'alg': 'ES256', 'kid': 'r'})}.{claims}.{signature}",
        f"{part({'alg': 'PS256', 'kid': 'r'})}.{claims}.{signature}",
    ):
        with pytest.raises(InvalidTokenError):
            accepted(wrong)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "without keys"),
        (b'{"keys": []}', "that can be used"),
        (b" " * (JWKS_BYTES_MAX + 1), "more than"),
        (json.dumps({"keys": [{}] * (KEYS_MAX + 1)}).encode(), "more than"),
        (json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "r"}]}).encode(), "be used"),
        (json.dumps({"keys": [rsa_jwk(use="enc")]}).encode(), "be used"),
        (json.dumps({"keys": [rsa_jwk(n=number(3 << 500, 64))]}).encode(), "be used"),
        (json.dumps({"keys": [{**ec_jwk(), "x": "AQ"}]}).encode(), "be used"),
        (b'{"keys": ' + b"[" * 100_000, "not JSON"),
    ],
)
def test_a_jwks_that_cannot_be_used(document: bytes, why: str) -> None:
    with pytest.raises(InvalidTokenError, match=why):
        Keys(document)
