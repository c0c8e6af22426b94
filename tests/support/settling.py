"""Waiting, in simulated time, for an application to have done its work after the last fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

LIMIT_S, STEP_S = 180, 3
QUIET_S = 5.0


async def settled(is_done: Callable[[], Awaitable[bool]], limit_s: int = LIMIT_S) -> None:
    """Return when it is done, and some time more, in which what is too much may come; or after a
    time that is longer than any of a client's: then a check says what is missing.

    A fixed time does not do: where a connection was lost without a word, aiokafka waits its 40 s.
    """
    for _ in range(0, limit_s, STEP_S):
        if await is_done():
            break
        await asyncio.sleep(STEP_S)
    await asyncio.sleep(QUIET_S)
