"""The login of an outgoing connection: SaslHandshake and SaslAuthenticate, once it is open and
again before its session ends (KIP-368).

What is said is not known here: whoever makes the connection gives an `Authentication`
(`kwire/security/sasl/client.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 1
RENEWED_AT = 0.85
"""The part of a session after which it is renewed, as Kafka's clients do at the earliest."""


class Authentication(Protocol):
    """One login; KafkaError where the other side refuses, or is not who it says."""

    session_ms: int

    def begin(self) -> m.SaslHandshakeRequest: ...

    def agreed(self, response: m.SaslHandshakeResponse, /) -> m.SaslAuthenticateRequest: ...

    def answered(
        self, response: m.SaslAuthenticateResponse, /
    ) -> m.SaslAuthenticateRequest | None: ...


MakeAuthentication: TypeAlias = Callable[[], Authentication]
"""One for every login; KafkaError where there is none to be had."""


class Asks(Protocol):
    """The connection, to which nothing else is given meanwhile."""

    def ask_handshake(
        self, request: m.SaslHandshakeRequest, version: int, /
    ) -> Pending[m.SaslHandshakeResponse]: ...

    def ask_authenticate(
        self, request: m.SaslAuthenticateRequest, version: int, /
    ) -> Pending[m.SaslAuthenticateResponse]: ...

    def logged_in(self, session_ms: int, /) -> None:
        """Other requests may go out; for so long, 0: for ever."""
        ...

    def login_failed(self, error: KafkaError, /) -> None: ...


class Login:
    """One login of one connection, from the handshake to its end."""

    def __init__(self, authentication: Authentication, connection: Asks) -> None:
        self._authentication = authentication
        self._connection = connection

    def start(self) -> None:
        """Send the handshake."""
        asked = self._connection.ask_handshake(self._authentication.begin(), HANDSHAKE_VERSION)
        asked.add_done_callback(self._agreed)

    def _agreed(self, pending: Pending[m.SaslHandshakeResponse]) -> None:
        try:
            request = self._authentication.agreed(pending.result())
        except KafkaError as error:
            self._connection.login_failed(error)
            return
        self._send(request)

    def _send(self, request: m.SaslAuthenticateRequest) -> None:
        asked = self._connection.ask_authenticate(request, AUTHENTICATE_VERSION)
        asked.add_done_callback(self._answered)

    def _answered(self, pending: Pending[m.SaslAuthenticateResponse]) -> None:
        try:
            request = self._authentication.answered(pending.result())
        except KafkaError as error:
            self._connection.login_failed(error)
            return
        if request is None:
            self._connection.logged_in(self._authentication.session_ms)
        else:
            self._send(request)
