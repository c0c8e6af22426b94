"""Long work of requests, a slice a turn of the loop.

What grows with the topics of a cluster takes longer than everybody else should wait. Such work is a
generator that yields between its slices. One turn does one slice, of the works in turn: so a
hundred clients that ask at once hold the loop no longer than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from kwire.pending import Pending

T = TypeVar("T")


class Slices:
    """Works that share the turns of a loop, whose `call_soon` they are given."""

    __slots__ = ("_call_soon", "_is_scheduled", "_works")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._works: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def run(self, work: Iterator[None], result: Callable[[], T]) -> Pending[T]:
        """`result()` when the work is done; fails with what either raises. It begins in a later
        turn, and ends where it is when the Pending is cancelled or failed."""
        outcome: Pending[T] = Pending()

        def go_on() -> bool:
            """One slice; whether there is more."""
            if outcome.done:
                return False
            try:
                next(work)
            except StopIteration:
                pass
            except Exception as error:
                outcome.fail(error)
                return False
            else:
                return True
            try:
                made = result()
            except Exception as error:
                outcome.fail(error)
            else:
                outcome.complete(made)
            return False

        self._works.append(go_on)
        self._schedule()
        return outcome

    def _schedule(self) -> None:
        if self._works and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        work = self._works.popleft()
        has_more = False
        try:
            has_more = work()
        finally:
            # Also when whoever takes a result fails: the other works go on.
            if has_more:
                self._works.append(work)
            self._schedule()
