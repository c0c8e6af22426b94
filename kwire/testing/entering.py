"""`async with` for what blocks while it begins and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def entered(enter: Callable[[], T], close: Callable[[], None]) -> T:
    """What `enter` returns, called in a thread. Who is cancelled meanwhile has no `__aexit__`: what
    has begun by then is closed first."""
    entering = asyncio.ensure_future(asyncio.to_thread(enter))
    try:
        return await asyncio.shield(entering)
    except asyncio.CancelledError:
        with suppress(Exception):  # it has not begun, and nobody waits for it any more
            await entering
        await asyncio.to_thread(close)
        raise
