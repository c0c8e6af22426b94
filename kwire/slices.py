"""Long work of requests, a slice a turn of the loop.

What grows with the topics of a cluster takes longer than everybody else should wait. Such work is a
generator that yields between its slices. One turn does one slice, of the works in turn: so a
hundred clients that ask at once hold the loop no longer than one. Where the time of a client is
measured its works are (`measured_by`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from kwire.pending import Pending

T = TypeVar("T")


class Meter(Protocol):
    """Measures the slices of works, and what they complete within them."""

    def begin(self) -> None:
        """A slice begins."""
        ...

    def end(self) -> None:
        """It has ended."""
        ...


class Slices:
    """Works that share the turns of a loop, whose `call_soon` they are given."""

    __slots__ = ("_meter", "_turns")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._turns = _Turns(call_soon)
        self._meter: Meter | None = None

    def measured_by(self, meter: Meter) -> Slices:
        """The same turns, for works whose slices are measured."""
        slices = Slices.__new__(Slices)
        slices._turns = self._turns
        slices._meter = meter
        return slices

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

        self._turns.add(go_on, self._meter)
        return outcome


class _Turns:
    """Who is in turn."""

    __slots__ = ("_call_soon", "_is_scheduled", "_works")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._works: deque[tuple[Callable[[], bool], Meter | None]] = deque()
        self._is_scheduled = False

    def add(self, work: Callable[[], bool], meter: Meter | None) -> None:
        """`work()` does a slice; whether there is more."""
        self._works.append((work, meter))
        self._schedule()

    def _schedule(self) -> None:
        if self._works and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        work, meter = self._works.popleft()
        has_more = False
        if meter is not None:
            meter.begin()
        try:
            has_more = work()
        finally:
            # Also when whoever takes a result fails: the other works go on.
            if meter is not None:
                meter.end()
            if has_more:
                self._works.append((work, meter))
            self._schedule()
