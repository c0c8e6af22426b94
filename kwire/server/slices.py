"""Long work of requests, a slice a turn of the loop.

What grows with the topics of a cluster takes longer than everybody else should wait. Such work is a
generator that yields between its slices. One turn does one slice, of the works in turn: so a
hundred clients that ask at once hold the loop no longer than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from kwire.coordinator.shard_interface import Loop
from kwire.pending import Pending

T = TypeVar("T")


class Slices:
    """The works of a node."""

    __slots__ = ("_loop", "_works")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._works: deque[Callable[[], bool]] = deque()

    def run(self, work: Iterator[None], result: Callable[[], T]) -> Pending[T]:
        """`result()` when the work is done; fails with what either raises. It begins in a later
        turn, and ends where it is when the Pending is cancelled."""
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
        if len(self._works) == 1:
            self._loop.call_soon(self._turn)
        return outcome

    def _turn(self) -> None:
        works = self._works
        # It stays in front meanwhile: whoever comes in then does not begin another turn.
        if works[0]():
            works.rotate(-1)
        else:
            works.popleft()
        if works:
            self._loop.call_soon(self._turn)
