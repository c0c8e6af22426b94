"""Requests of which one turn of the loop starts only so many.

Members of a group send heartbeats, each of them cheap, and a thousand may arrive in one turn: when
a broker came back, or when all of them were started by one program. Everybody else would wait until
the last is answered (measured: 57 ms). Those beyond STARTS_A_TURN wait for the next turns, in the
order in which they came, each in front of what its connection sends behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

STARTS_A_TURN = 30


class Turns:
    """What the connections of a listener share."""

    __slots__ = ("_is_armed", "_left", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left = STARTS_A_TURN
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_armed = False

    def take(self) -> bool:
        """Whether one more may start in this turn, which it counts for."""
        if self._waiting or not self._left:
            return False
        self._left -= 1
        self._arm()
        return True

    def wait(self, start: Callable[[], None]) -> None:
        """Call `start()` in a later turn."""
        self._waiting.append(start)
        self._arm()

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """The next turn."""
        self._is_armed = False
        due = min(len(self._waiting), STARTS_A_TURN)
        self._left = STARTS_A_TURN - due
        if due:
            self._arm()
        for _ in range(due):
            self._waiting.popleft()()
