"""Wait for what a test of kwire wants; its clusters may take longer than a user's test waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.testing.waiting import NotInTime, wait_until

__all__ = ["NotInTime", "wait_for"]

WAIT_S = 60.0

T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str, timeout_s: float = WAIT_S) -> T:
    """`wait_until` with a longer limit, and a name for what is waited for. Raises NotInTime."""
    return wait_until(condition, what, timeout_s=timeout_s)
