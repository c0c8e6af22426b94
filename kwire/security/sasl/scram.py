"""SCRAM-SHA-256 and SCRAM-SHA-512, the server's side.

    client   n,[a=authzid],n=user,r=nonce[,extensions]     extension tokenauth=true: a token's id
    server   r=nonce+ours,s=salt,i=iterations
    client   c=channel binding,r=nonce+ours,p=proof
    server   v=signature

The nonce that comes back has to be ours as a whole (CVE-2024-56128), whatever the proof says. An
unknown user is given a salt that is always the same for this name, and is refused where a wrong
password is: Kafka refuses it one message earlier, which tells who is a user.
Source: RFC 5802, RFC 7677; formats and texts measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kwire.clock import Random
from kwire.security.sasl.mechanisms import (
    OTHER_ID,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Answer,
    AuthenticationFailed,
    Identity,
)

HASHES = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
TYPES = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
"""Kafka's numbers of the mechanisms, as they stand in the metadata log."""
ITERATIONS_MIN = 4096
NONCE_BYTES = 20
SALT_BYTES = 20
MESSAGE_BYTES_MAX = 16 * 1024

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,(?:m={_VALUE},)?"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<without>c={_BASE64},r=(?P<nonce>{_PRINTABLE})){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)


class Credential(Protocol):
    """What is kept of a password."""

    @property
    def salt(self) -> bytes: ...

    @property
    def stored_key(self) -> bytes: ...

    @property
    def server_key(self) -> bytes: ...

    @property
    def iterations(self) -> int: ...


class Known(NamedTuple):
    """What there is of who wants to log in: `principal` is who it will be."""

    principal: str
    credential: Credential
    expires_ms: int | None = None


class Derived(NamedTuple):
    """The keys of a password, or of a delegation token."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "Derived([hidden])"


LookUp = Callable[[str, int], Known | None]
"""(user or id of a token, wall clock in ms) -> what is known of it."""


class Cost(NamedTuple):
    """What a client is told of a credential."""

    iterations: int = ITERATIONS_MIN
    salt_bytes: int = SALT_BYTES


class ScramParts(NamedTuple):
    """What all exchanges of a mechanism on a listener have in common.

    `users` and `tokens` find credentials; `secret` makes the salts of those who are unknown, as
    long, and with as many iterations, as `unknown(name)` says: those of users that there are.
    """

    mechanism: str
    users: LookUp
    tokens: LookUp
    random: Random
    secret: bytes
    unknown: Callable[[str], Cost] = lambda name: Cost()

    def __repr__(self) -> str:
        return f"ScramParts({self.mechanism})"


def derived(mechanism: str, password: bytes, salt: bytes, iterations: int) -> Derived:
    """The keys of a password."""
    hash_name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return Derived(salt, stored_key, hmac.digest(salted, b"Server Key", hash_name), iterations)


class ScramServer:
    """One exchange: two tokens."""

    __slots__ = ("_auth_start", "_by_token", "_known", "_nonce", "_parts")

    def __init__(self, parts: ScramParts) -> None:
        self._parts = parts
        self._nonce = ""
        self._auth_start = ""
        self._by_token = False
        self._known: Known | None = None

    def evaluate(self, token: bytes, wall_ms: int) -> Answer:
        """See `ServerMechanism.evaluate`."""
        if len(token) > MESSAGE_BYTES_MAX:
            raise AuthenticationFailed
        text = token.decode("utf-8", "replace")
        return self._last(text, wall_ms) if self._nonce else self._first(text, wall_ms)

    def _first(self, text: str, wall_ms: int) -> Answer:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise AuthenticationFailed
        name = unescaped(match["name"])
        self._by_token = _extensions(match["extensions"]).get("tokenauth", "").lower() == "true"
        look_up = self._parts.tokens if self._by_token else self._parts.users
        known = self._known = look_up(name, wall_ms)
        authorization_id = unescaped(match["authzid"] or "")
        if authorization_id and authorization_id != name:
            raise AuthenticationFailed(OTHER_ID)
        if known is not None:
            salt, iterations = known.credential.salt, known.credential.iterations
        else:
            iterations, salt_bytes = Cost() if self._by_token else self._parts.unknown(name)
            salt = salt_of(self._parts.mechanism, self._parts.secret, name, salt_bytes)
        ours = self._parts.random.random_bytes(NONCE_BYTES)
        self._nonce = match["nonce"] + base64.b64encode(ours).decode().rstrip("=")
        message = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._auth_start = f"{match['bare']},{message},"
        return Answer(message.encode())

    def _last(self, text: str, wall_ms: int) -> Answer:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise AuthenticationFailed
        # Both are compared whatever the first says: how long it takes tells nothing.
        is_ours = hmac.compare_digest(match["nonce"].encode(), self._nonce.encode())
        known = self._known
        stored_key = (
            made_up(self._parts.mechanism, self._parts.secret, b"key", "")
            if known is None
            else bytes(known.credential.stored_key)
        )
        message = (self._auth_start + match["without"]).encode("utf-8", "replace")
        proof = _decoded(match["proof"])
        is_proved = _proves(HASHES[self._parts.mechanism], stored_key, message, proof)
        if known is None or not is_ours or not is_proved:
            raise AuthenticationFailed
        if known.credential.iterations < ITERATIONS_MIN:
            raise AuthenticationFailed
        if known.expires_ms is not None and known.expires_ms <= wall_ms:
            raise AuthenticationFailed
        signature = hmac.digest(
            bytes(known.credential.server_key), message, HASHES[self._parts.mechanism]
        )
        identity = Identity(known.principal, self._by_token, known.expires_ms)
        return Answer(b"v=" + base64.b64encode(signature), identity)


def made_up(mechanism: str, secret: bytes, use: bytes, name: str) -> bytes:
    """Of the length of a hash, always the same for a name while the process runs; tells nothing
    of the secret."""
    return hmac.digest(secret, use + b"\0" + name.encode(), HASHES[mechanism])


def salt_of(mechanism: str, secret: bytes, name: str, salt_bytes: int = SALT_BYTES) -> bytes:
    """The salt of a name that has none of its own: of an unknown user, of a token there is or
    not."""
    return made_up(mechanism, secret, b"salt", name)[:salt_bytes]


def _proves(hash_name: str, stored_key: bytes, message: bytes, proof: bytes) -> bool:
    """Whether a proof was made with the key that `stored_key` is the hash of."""
    signature = hmac.digest(stored_key, message, hash_name)
    padded = proof.ljust(len(signature), b"\0")[: len(signature)]
    client_key = bytes(a ^ b for a, b in zip(signature, padded))
    same = hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), stored_key)
    return same and len(proof) == len(signature)


def unescaped(name: str) -> str:
    """A name without the escapes of SCRAM."""
    return name.replace("=2C", ",").replace("=3D", "=")


def escaped(name: str) -> str:
    """A name as it stands in a message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def _extensions(text: str) -> dict[str, str]:
    """`,name=value,...` behind the nonce of a client's first message."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    return {name: value for name, _, value in pairs}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed from None
