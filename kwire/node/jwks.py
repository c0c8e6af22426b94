"""The keys with which an issuer signs tokens: read at the start, and again from time to time.

A token of a key that is not known has them read at once, though not more often than every
`EXPEDITED_S`: anybody can name a key. What is read badly leaves the old keys in force.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kwire.config.errors import ConfigError
from kwire.network.http_request import ask
from kwire.security.sasl.jwks import JWKS_BYTES_MAX, Keys
from kwire.security.sasl.jwt import Jws
from kwire.security.sasl.oauth_settings import OAuthSettings
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_settings import FILE_SCHEME, path_of

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

EXPEDITED_S = 10.0
OK = 200


def read_keys(url: str, tls: ssl.SSLContext | None = None) -> Keys:
    """The keys behind a URL; OSError, InvalidTokenError. Blocks."""
    if url.startswith(FILE_SCHEME):
        with open(path_of(url), "rb") as file:
            return Keys(file.read(JWKS_BYTES_MAX + 1))
    answer = ask(url, headers={"Accept": "*/*"}, tls=tls, bytes_max=JWKS_BYTES_MAX)
    if answer.status != OK:
        raise OSError(f"it answers {answer.status}")
    return Keys(answer.body)


class JwksSource:
    """See the module. `settings.jwks_url` is where they are; `open` reads, `close` ends it.
    ConfigError for options of TLS that cannot be used."""

    def __init__(self, loop: asyncio.AbstractEventLoop, settings: OAuthSettings) -> None:
        assert settings.jwks_url is not None
        self._loop = loop
        self._url = settings.jwks_url
        self._tls = _tls(settings)
        self._settings = settings
        self._keys: Keys | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._read_s = float("-inf")
        self._failures = 0
        self._is_closed = False

    async def open(self) -> None:
        """Read them once; where that fails, the log says so, and it is tried again."""
        await self._read()

    def close(self) -> None:
        """Read no more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()

    def verify(self, jws: Jws) -> None:
        """See `kwire.security.sasl.jwks.Keys.verify`."""
        kid = jws.header.get("kid")
        if self._keys is None or (kid is not None and not self._keys.knows(kid)):
            self._expedite()
        if self._keys is None:
            raise InvalidTokenError("no keys are known yet")
        self._keys.verify(jws)

    def _expedite(self) -> None:
        if self._loop.time() >= self._read_s + EXPEDITED_S:
            self._begin()

    def _begin(self) -> None:
        if not self._is_closed and self._reading is None:
            self._reading = self._loop.create_task(self._read())

    async def _read(self) -> None:
        settings = self._settings
        self._read_s = self._loop.time()
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._keys = await self._loop.run_in_executor(None, read_keys, self._url, self._tls)
            self._failures = 0
            delay_ms = settings.refresh_ms
        except (OSError, InvalidTokenError) as error:
            logger.warning("the keys of tokens cannot be read from %s: %s", self._url, error)
            delay_ms = min(settings.retry_ms * 2 ** min(self._failures, 20), settings.retry_max_ms)
            self._failures += 1
        self._reading = None
        if not self._is_closed:
            self._timer = self._loop.call_later(max(1, delay_ms) / 1000, self._begin)


def _tls(settings: OAuthSettings) -> ssl.SSLContext | None:
    """What an https address is read with: `ssl.` options of the listener's login module."""
    if not settings.tls or not (settings.jwks_url or "").startswith("https:"):
        return None
    from kwire.security.tls.client import context_of

    try:
        return context_of(dict(settings.tls))
    except ConfigError as error:
        raise ConfigError(f"the keys of tokens cannot be read: {error}") from None
