"""When to ask again, and how long to wait before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kwire.client.errors import ClientError
from kwire.clock import Random

T = TypeVar("T")

JITTER_STEPS = 1000


class Backoff:
    """Times between attempts: each twice the last one up to `max_s`, and up to a fifth longer, so
    that clients of one failure do not come back together."""

    def __init__(self, min_s: float, max_s: float, random: Random) -> None:
        self._min_s = min_s
        self._max_s = max_s
        self._random = random
        self._attempts = 0

    def next_s(self) -> float:
        """How long to wait now."""
        base_s = min(self._min_s * 2 ** min(self._attempts, 16), self._max_s)
        self._attempts += 1
        return float(base_s * (1 + self._random.below(JITTER_STEPS) / JITTER_STEPS / 5))

    def reset(self) -> None:
        """It succeeded."""
        self._attempts = 0


async def retrying(
    loop: asyncio.AbstractEventLoop,
    work: Callable[[], Awaitable[T]],
    backoff: Backoff,
    timeout_s: float,
) -> T:
    """What `work` gives, which is called again while its error is retriable and there is time."""
    end_s = loop.time() + timeout_s
    while True:
        try:
            return await work()
        except ClientError as error:
            pause_s = backoff.next_s()
            if not error.is_retriable or loop.time() + pause_s > end_s:
                raise
        await asyncio.sleep(pause_s)
