"""Wait for what a test wants, with a limit; no test sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

WAIT_S = 60.0
PAUSE_S = 0.02

T = TypeVar("T")


class NotInTime(AssertionError):
    """What was waited for did not come."""


def wait_for(condition: Callable[[], T], what: str, timeout_s: float = WAIT_S) -> T:
    """The first true value of `condition`, asked for every 20 ms.

    Raises NotInTime, which names `what`, when none came within `timeout_s` seconds.
    """
    end = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= end:
            raise NotInTime(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(PAUSE_S)
