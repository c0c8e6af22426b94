"""Waiting for the controller to let a broker go, as long as there is one that could."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

CONTROLLED_SHUTDOWN_S = 60.0
LOOK_S = 0.5


async def let_go(
    loop: asyncio.AbstractEventLoop,
    stopped: asyncio.Future[None],
    nobody_answers: Callable[[], bool],
) -> None:
    """Return when `stopped` is done, nobody is left who would answer, or the time is over."""
    end_s = loop.time() + CONTROLLED_SHUTDOWN_S
    while not stopped.done() and not nobody_answers():
        if loop.time() >= end_s:
            logger.warning("the controller did not let us go in time")
            return
        await asyncio.wait([stopped], timeout=LOOK_S)
