"""The tokens that this node logs in with at others: got beside the loop, replaced before they
expire (`sasl.login.refresh.*`)."""

from __future__ import annotations

import asyncio
import logging

from kwire.clock import Clock
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_request import RETRY_S
from kwire.security.token_login import TokenLogin

SHORTEST_MS = 1000
"""Between two tokens, however short they last."""

logger = logging.getLogger(__name__)


class TokenSource:
    """Keeps a login in tokens. `open` has asked for the first one when it returns; where that has
    failed, the log says so, and it is tried again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, login: TokenLogin, clock: Clock) -> None:
        self._loop = loop
        self._login = login
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._getting: asyncio.Task[None] | None = None
        self._is_closed = False
        self._failures = 0

    async def open(self) -> None:
        """Ask once."""
        await self._get()

    def close(self) -> None:
        """Nothing is asked any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._getting is not None:
            self._getting.cancel()

    def _begin(self) -> None:
        self._timer = None
        if not self._is_closed:
            self._getting = self._loop.create_task(self._get())

    async def _get(self) -> None:
        login = self._login
        try:
            login.take(await self._loop.run_in_executor(None, login.fetch(is_once=True)))
            delay_ms = max(SHORTEST_MS, login.due_ms - self._clock.wall_ms())
            self._failures = 0
        except OSError as error:
            self._tell(str(error))
            settings = login.settings
            backoff_ms = settings.retry_ms * 2 ** min(self._failures, 20)
            delay_ms = max(1, min(backoff_ms, settings.retry_max_ms))
            self._failures += 1
        except InvalidTokenError as error:  # another attempt would be answered alike
            self._tell(str(error))
            delay_ms = RETRY_S * 1000
        self._getting = None
        if not self._is_closed:
            self._timer = self._loop.call_later(delay_ms / 1000, self._begin)

    def _tell(self, failure: str) -> None:
        """A failure that goes on is told once."""
        if failure != self._login.failure:
            logger.warning("no token from %s: %s", self._login.settings.url, failure)
        self._login.failure = failure
