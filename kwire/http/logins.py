"""How what a caller brings becomes a login at the broker: Basic a user and a password, Bearer a
token.

A listener with TLS is known by the broker's own certificate, which the broker tells over the pair
of sockets: no authority has to be trusted, and one that is replaced is known at the next login.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from kwire.client.settings import ConnectionSettings
from kwire.clock import Random
from kwire.http.local import LocalBroker
from kwire.http.local import Refused as NotTold
from kwire.security.sasl.client import OAuthBearerClient, PlainClient, SaslClient, ScramClient
from kwire.security.sasl.client_settings import MakeLogin
from kwire.security.sasl.mechanisms import PLAIN

CLIENT_ID = "kwire-http"
BASIC, BEARER = "basic", "bearer"
BASIC_MAX = 4096
BEARER_MAX = 16384
RETRY_TIMEOUT_S = 5.0
CERTIFICATES = "certificates"
CHALLENGES = {BASIC: 'Basic realm="kwire", charset="UTF-8"', BEARER: 'Bearer realm="kwire"'}
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Refused(Exception):
    """No answer for this caller: an HTTP status, and one line why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class LoginWay(NamedTuple):
    """Where what a scheme brings is tried, and by which mechanisms. `tls_listener` is the name of
    a listener with TLS, empty without."""

    bootstrap: str
    mechanisms: list[str]
    tls_listener: str


class Credentials(NamedTuple):
    """What a caller has brought: a user and a password, or a token in the place of both."""

    scheme: str
    user: str
    secret: str

    def __repr__(self) -> str:
        return f"Credentials({self.scheme})"

    @property
    def login(self) -> str:
        """What tells these credentials from others on every node, and does not give them away."""
        if self.scheme == BASIC:
            return f"{BASIC}:{self.user}"
        return f"{BEARER}:{hashlib.sha256(self.secret.encode()).hexdigest()}"

    @property
    def name(self) -> str:
        """What this caller is called by every node: the user, or the subject of a token, which
        counts once the broker has taken it. A token that tells none is a caller of its own."""
        if self.scheme == BASIC:
            return self.user
        try:
            payload = self.secret.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            subject = claims["sub"]
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            subject = None
        if isinstance(subject, str) and subject:
            return subject
        return hashlib.sha256(self.secret.encode()).hexdigest()


class Logins:
    """See the module. `ways` by scheme; `broker` tells certificates."""

    def __init__(
        self, ways: Mapping[str, LoginWay], random: Random, broker: LocalBroker | None
    ) -> None:
        self._ways = ways
        self._random = random
        self._broker = broker

    @property
    def expected(self) -> str:
        """The schemes, for a message."""
        return " or ".join(self._ways)

    def challenges(self) -> str:
        """The WWW-Authenticate header."""
        return ", ".join(CHALLENGES[scheme] for scheme in self._ways)

    def read(self, authorization: str) -> Credentials:
        """What an Authorization header brings; Refused."""
        scheme, _, given = authorization.partition(" ")
        scheme, given = scheme.lower(), given.strip()
        if scheme not in self._ways:
            raise Refused(401, f"expected {self.expected} authentication")
        return _token(given) if scheme == BEARER else _password(given)

    async def settings(self, credentials: Credentials) -> list[ConnectionSettings]:
        """How the login is tried, one after the other: which mechanism knows a user is not to be
        seen. Refused where the broker does not tell its certificate."""
        way = self._ways[credentials.scheme]
        tls = await self._tls(way.tls_listener) if way.tls_listener else None
        return [
            ConnectionSettings(
                way.bootstrap,
                client_id=CLIENT_ID,
                tls=None if tls is None else lambda: tls,
                check_host_name=False,
                login=self._login(mechanism, credentials),
                retry_timeout_s=RETRY_TIMEOUT_S,
            )
            for mechanism in way.mechanisms
        ]

    async def _tls(self, listener: str) -> ssl.SSLContext:
        from kwire.http.tls import trusting

        assert self._broker is not None, "it tells the certificates of its listeners"
        try:
            told = json.loads(await self._broker.ask(CERTIFICATES, {"listener": listener}))
        except NotTold as error:
            raise Refused(503, str(error)) from None
        return trusting([base64.b64decode(one) for one in told])

    def _login(self, mechanism: str, credentials: Credentials) -> MakeLogin:
        _, user, secret = credentials

        def make() -> SaslClient:  # the text of a `partial` would show the password
            if credentials.scheme == BEARER:
                return SaslClient(OAuthBearerClient(secret))
            if mechanism == PLAIN:
                return SaslClient(PlainClient(user, secret))
            return SaslClient(ScramClient(mechanism, user, secret, self._random))

        return make


def _token(given: str) -> Credentials:
    if len(given) > BEARER_MAX or not _TOKEN.fullmatch(given):
        raise Refused(401, "the credentials are no bearer token")
    return Credentials(BEARER, "", given)


def _password(given: str) -> Credentials:
    if len(given) > BASIC_MAX:
        raise Refused(401, "the credentials are too long")
    try:
        text = base64.b64decode(given, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Refused(401, "the credentials are no base64 of UTF-8") from None
    user, colon, password = text.partition(":")
    if not colon or not user or "\0" in text:
        raise Refused(401, "the credentials are no user:password")
    return Credentials(BASIC, user, password)
