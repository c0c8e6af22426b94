"""Waiting for the end of a controlled shutdown, as long as there is a controller to grant it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

CONTROLLED_SHUTDOWN_S = 60.0
CHECK_INTERVAL_S = 0.5


async def shutdown_granted(
    loop: asyncio.AbstractEventLoop,
    granted: asyncio.Future[None],
    nobody_answers: Callable[[], bool],
) -> None:
    """Return when `granted` is done, nobody is left who would grant it, or the time is over."""
    end_s = loop.time() + CONTROLLED_SHUTDOWN_S
    while not granted.done() and not nobody_answers():
        if loop.time() >= end_s:
            logger.warning("the controller did not let us go in time")
            return
        await asyncio.wait([granted], timeout=CHECK_INTERVAL_S)
