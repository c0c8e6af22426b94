"""So many calls a turn of the loop, the others in the turns that follow, in the order they came.

What a thousand members of a group ask for, or are answered, in one turn is cheap one by one: all
of it together would have everybody else wait for tens of milliseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class TurnBudget:
    """`a_turn` calls in a turn of the loop whose `call_soon` it is given."""

    __slots__ = ("_a_turn", "_call_soon", "_is_armed", "_left", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], a_turn: int) -> None:
        self._call_soon = call_soon
        self._a_turn = self._left = a_turn
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_armed = False

    def take(self) -> bool:
        """Whether one more may be done in this turn, which it counts for."""
        if self._waiting or not self._left:
            return False
        self._left -= 1
        self._arm()
        return True

    def wait(self, call: Callable[[], None]) -> None:
        """`call()` in a later turn."""
        self._waiting.append(call)
        self._arm()

    def do_all(self) -> None:
        """What waits, now: nobody turns the loop any more."""
        while self._waiting:
            self._waiting.popleft()()

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._call_soon(self._begin)

    def _begin(self) -> None:
        """The next turn."""
        self._is_armed = False
        due = min(len(self._waiting), self._a_turn)
        self._left = self._a_turn - due
        if due:
            self._arm()
        for _ in range(due):
            if self._waiting:  # else one of these calls has done all
                self._waiting.popleft()()
