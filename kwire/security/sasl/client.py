"""One connection's authentication, the client's side, as a pure state machine of messages.

    login = SaslClient(mechanism)
    login.begin()               the SaslHandshake to send, at version 1
    login.agreed(response)      the first SaslAuthenticate to send, at version 2 or below
    login.answered(response)    the next one; None: the client is authenticated, for `session_ms`

Brokers use it among themselves (`kwire/network/login.py`), the command line and `kwire.client` for
themselves. What a server says is checked: its nonce, its signature, how much work it asks for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Protocol

from kwire.clock import Random
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.sasl.mechanisms import OAUTHBEARER, PLAIN
from kwire.security.sasl.scram import HASHES, ITERATIONS_MIN, NONCE_BYTES, escaped

ITERATIONS_MAX = 1_000_000
"""More would let a server keep its clients busy."""
TOKENS_MAX = 8
"""Of one exchange: no mechanism has more."""

_SERVER_FIRST = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([a-zA-Z0-9/+=]+),i=([0-9]{1,10})(?:,.*)?")


class ClientMechanism(Protocol):
    """One exchange with one server."""

    @property
    def name(self) -> str: ...

    def first(self) -> bytes:
        """The first token."""
        ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The token that answers a server's; None where the exchange is complete. KafkaError
        SASL_AUTHENTICATION_FAILED where the server is not who it says."""
        ...


MakeClient = Callable[[], ClientMechanism]


def failed(reason: str) -> KafkaError:
    """Authentication has failed."""
    return KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, reason)


class SaslClient:
    """See the module."""

    __slots__ = ("_mechanism", "_tokens", "session_ms")

    def __init__(self, mechanism: ClientMechanism) -> None:
        self._mechanism = mechanism
        self._tokens = 0
        self.session_ms = 0
        """How long the client is authenticated, 0: as long as the connection."""

    def begin(self) -> m.SaslHandshakeRequest:
        """The request to start with."""
        return m.SaslHandshakeRequest(mechanism=self._mechanism.name)

    def agreed(self, response: m.SaslHandshakeResponse) -> m.SaslAuthenticateRequest:
        """The request that follows; KafkaError where the server does not take the mechanism."""
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise failed(
                f"the SASL mechanism {self._mechanism.name} is not enabled; the server has "
                + ", ".join(response.mechanisms[:TOKENS_MAX])
            )
        if response.error_code != ErrorCode.NONE:
            raise failed(f"SaslHandshake: {ErrorCode(response.error_code).name}")
        return m.SaslAuthenticateRequest(auth_bytes=self._mechanism.first())

    def answered(self, response: m.SaslAuthenticateResponse) -> m.SaslAuthenticateRequest | None:
        """The next request, None: it is done; KafkaError where the server refuses."""
        self._tokens += 1
        if response.error_code != ErrorCode.NONE:
            raise failed(response.error_message or ErrorCode(response.error_code).name)
        if self._tokens > TOKENS_MAX:
            raise failed("the server does not come to an end")
        token = self._mechanism.evaluate(bytes(response.auth_bytes))
        if token is None:
            self.session_ms = response.session_lifetime_ms
            return None
        return m.SaslAuthenticateRequest(auth_bytes=token)


class PlainClient:
    """A user and its password, as they are."""

    name = PLAIN

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """See `ClientMechanism.first`."""
        return self._token

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See `ClientMechanism.evaluate`."""
        return None


class ScramClient:
    """The proof of a password, or with `by_token` of a delegation token (its id and HMAC)."""

    def __init__(
        self, mechanism: str, user: str, password: str, random: Random, by_token: bool = False
    ) -> None:
        self.name = mechanism
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        nonce = base64.b64encode(random.random_bytes(NONCE_BYTES)).decode().rstrip("=")
        extension = ",tokenauth=true" if by_token else ""
        self._nonce = nonce
        self._bare = f"n={escaped(user)},r={nonce}{extension}"
        self._signature = b""

    def first(self) -> bytes:
        """See `ClientMechanism.first`."""
        return f"n,,{self._bare}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See `ClientMechanism.evaluate`."""
        text = challenge.decode("utf-8", "replace")
        if not self._signature:
            return self._final(text)
        wanted = b"v=" + base64.b64encode(self._signature)
        if not hmac.compare_digest(challenge, wanted):
            raise failed("the server does not know the password either: its signature is wrong")
        return None

    def _final(self, text: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(text)
        if match is None:
            raise failed("the server's first SCRAM message is malformed")
        nonce, iterations = match[1], int(match[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise failed("the server's nonce does not begin with ours")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise failed(
                f"the server asks for {iterations} iterations; accepted: {ITERATIONS_MIN} to "
                f"{ITERATIONS_MAX}"
            )
        try:
            salt = base64.b64decode(match[2], validate=True)
        except ValueError:
            raise failed("the server's salt is malformed") from None
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        without = f"c=biws,r={nonce}"
        message = f"{self._bare},{text},{without}".encode()
        proof = bytes(
            a ^ b for a, b in zip(client_key, hmac.digest(stored_key, message, self._hash))
        )
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._signature = hmac.digest(server_key, message, self._hash)
        return f"{without},p={base64.b64encode(proof).decode()}".encode()


class OAuthBearerClient:
    """A token that somebody else has made, with the extensions of the login (KIP-342)."""

    name = OAUTHBEARER

    def __init__(self, token: str, extensions: dict[str, str] | None = None) -> None:
        pairs = "".join(f"{name}={value}\x01" for name, value in (extensions or {}).items())
        self._token = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()

    def first(self) -> bytes:
        """See `ClientMechanism.first`."""
        return self._token

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See `ClientMechanism.evaluate`: a refusal comes with reasons, and has to be answered."""
        return b"\x01" if challenge else None
