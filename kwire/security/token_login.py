"""Logging in by tokens of an issuer: `TokenLogin` has the token of now, and how the next is got.

Getting one blocks, so it is a job that somebody else runs: a node beside its loop
(`node/token_source.py`), `kwire.client` as well, the command line as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.network.http_request import TIMEOUT_MS, HttpAnswer, ask
from kwire.security.sasl.client import OAuthBearerClient, SaslClient, failed
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_request import (
    ANSWER_BYTES_MAX,
    FINAL_STATUSES,
    Token,
    checked_token,
    error_of_answer,
    refresh_at_ms,
    token_of_answer,
    token_request,
)
from kwire.security.sasl.token_settings import (
    FILE_SCHEME,
    AssertionSettings,
    RefreshSettings,
    TokenSettings,
    path_of,
)

if TYPE_CHECKING:
    import ssl

FILE_BYTES_MAX = 256 * 1024
ID_BYTES = 16
CHANCES = 1 << 20
OAUTH_EXTRA = "pip install 'kwire[oauth]'"

FetchToken: TypeAlias = Callable[[], Token]
"""Blocks. OSError, InvalidTokenError: one line, and nothing secret in it."""


class TokenLogin:
    """See the module; called, it gives one login with the token of now: KafkaError where there is
    none. ConfigError for settings that cannot be used."""

    def __init__(
        self,
        settings: TokenSettings,
        refresh: Callable[[], RefreshSettings],
        random: Random,
        wall_ms: Callable[[], int],
    ) -> None:
        self.settings = settings
        self._refresh = refresh
        self._random = random
        self._wall_ms = wall_ms
        self._tls = _tls(settings)
        self._token: Token | None = None
        self._due_ms = 0
        self.failure = "no token has been got yet"
        """Why there is no token."""
        if settings.assertion is not None and settings.assertion.file is None:
            try:
                import kwire.security.sasl.assertion  # noqa: F401 - tells at the start, not later
            except ImportError:
                raise ConfigError(
                    f"an assertion of OAUTHBEARER needs the library cryptography: {OAUTH_EXTRA}"
                ) from None

    def __repr__(self) -> str:
        return f"TokenLogin({self.settings.url})"

    def __call__(self) -> SaslClient:
        token = self._token
        if token is None or token.expires_ms <= self._wall_ms():
            raise failed(f"no token from {self.settings.url}: {self.failure}")
        return SaslClient(OAuthBearerClient(token.text, dict(self.settings.extensions)))

    @property
    def is_due(self) -> bool:
        """Whether a token is to be got before the next login."""
        return self._token is None or self._wall_ms() >= self._due_ms

    @property
    def due_ms(self) -> int:
        """When the next token is to be got, by the wall clock."""
        return self._due_ms

    def fetch(self, *, is_once: bool = False) -> FetchToken:
        """The job that gets the next token: it touches nothing but what it was given. `is_once`:
        by one attempt, so that nobody waits in it for the next one."""
        settings = self.settings._replace(retry_max_ms=0) if is_once else self.settings
        id_bytes = self._random.random_bytes(ID_BYTES)
        return partial(fetch_token, settings, self._tls, self._wall_ms(), id_bytes)

    def take(self, token: Token) -> None:
        """A token was got."""
        self._token = token
        chance = self._random.below(CHANCES) / CHANCES
        self._due_ms = refresh_at_ms(token, self._wall_ms(), self._refresh(), chance)
        self.failure = "the token has expired"

    def renew(self) -> None:
        """Get a token where one is due. Blocks; a failure shows at the next login."""
        if not self.is_due:
            return
        try:
            self.take(self.fetch()())
        except (OSError, InvalidTokenError) as error:
            self.failure = str(error)


def fetch_token(
    settings: TokenSettings,
    tls: ssl.SSLContext | None,
    wall_ms: int,
    id_bytes: bytes,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Token:
    """See `FetchToken`. What may pass is tried again, for `sasl.login.retry.backoff.max.ms` in all.

    A file is read as it is now.
    """
    if settings.url.startswith(FILE_SCHEME):
        return checked_token(
            _read(path_of(settings.url)).decode("utf-8", "replace").strip(), settings
        )
    assertion = None
    if settings.assertion is not None:
        assertion = _assertion(settings.assertion, wall_ms, id_bytes)
    request = token_request(settings, assertion)
    ends_s = now() + settings.retry_max_ms / 1000
    attempt = 0
    while True:
        try:
            answer = ask(
                settings.url,
                headers=request.headers,
                body=request.body,
                tls=tls,
                connect_timeout_ms=settings.connect_timeout_ms or TIMEOUT_MS,
                read_timeout_ms=settings.read_timeout_ms or TIMEOUT_MS,
                bytes_max=ANSWER_BYTES_MAX,
            )
            if answer.status in (200, 201) and answer.body.strip():
                return checked_token(token_of_answer(answer.body), settings)
            reason = _refusal(answer)
            if answer.status in FINAL_STATUSES:
                raise InvalidTokenError(reason)
        except OSError as error:
            reason = str(error)
        wait_s = min(settings.retry_ms * 2 ** min(attempt, 30) / 1000, ends_s - now())
        if wait_s <= 0:
            raise OSError(reason)
        sleep(wait_s)
        attempt += 1


def _refusal(answer: HttpAnswer) -> str:
    code = error_of_answer(answer.body)
    return f"it answers {answer.status}" + (f", {code}" if code else "")


def _assertion(settings: AssertionSettings, wall_ms: int, id_bytes: bytes) -> str:
    if settings.file is not None:
        return _read(settings.file).decode("utf-8", "replace").strip()
    from kwire.security.sasl.assertion import made_assertion

    assert settings.key_file is not None, "the settings have been checked"
    template = None if settings.template_file is None else _read(settings.template_file)
    return made_assertion(settings, _read(settings.key_file), template, wall_ms, id_bytes)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise OSError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise InvalidTokenError(f"{path} has more than {FILE_BYTES_MAX} bytes")
    return data


def _tls(settings: TokenSettings) -> ssl.SSLContext | None:
    """What the issuer's address is connected to with: `ssl.` options of the login module."""
    if not settings.url.startswith("https:") or not settings.tls:
        return None
    from kwire.security.tls.client import context_of

    return context_of(dict(settings.tls))
