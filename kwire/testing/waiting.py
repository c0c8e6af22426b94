"""Wait for what a test wants to see, with a limit: no test needs to sleep."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

TIMEOUT_S = 10.0
PAUSE_S = 0.01

T = TypeVar("T")


class NotInTime(AssertionError):
    """What was waited for did not come."""


async def until(
    condition: Callable[[], T | Awaitable[T]], what: str = "", *, timeout_s: float = TIMEOUT_S
) -> T:
    """The first true value of `condition`, a function or a coroutine function, asked every 10 ms.

    NotInTime, which names `what` and the last value, when none came within `timeout_s` seconds.
    """
    end = time.monotonic() + timeout_s
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() >= end:
            raise _not_in_time(condition, what, found, timeout_s)
        await asyncio.sleep(PAUSE_S)


def wait_until(condition: Callable[[], T], what: str = "", *, timeout_s: float = TIMEOUT_S) -> T:
    """`until` for tests that block."""
    end = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= end:
            raise _not_in_time(condition, what, found, timeout_s)
        time.sleep(PAUSE_S)


def _not_in_time(
    condition: Callable[[], object], what: str, found: object, timeout_s: float
) -> NotInTime:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return NotInTime(f"{name}: not within {timeout_s:g} s, the last answer was {found!r}")
