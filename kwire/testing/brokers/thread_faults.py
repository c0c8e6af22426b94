"""The faults on command of a broker that runs in a thread: asked on its loop while that turns, and
here while it stands still or has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kwire.faults.kinds import Given
from kwire.node.faults import NodeFaults
from kwire.testing.brokers.runner import BrokerFailed
from kwire.testing.loop_thread import LoopThread

T = TypeVar("T")


class ThreadFaults:
    """See `FaultControl`. `is_still()`: whether the loop does nothing."""

    def __init__(
        self, thread: LoopThread, faults: NodeFaults, is_still: Callable[[], bool]
    ) -> None:
        self._thread = thread
        self._faults = faults
        self._is_still = is_still

    def add(self, given: Mapping[str, Given]) -> dict[str, Given]:
        if self._is_still():
            raise BrokerFailed("a broker that is paused takes no faults: resume it first")
        return self._thread.run(self._faults.add(given))

    def remove(self, number: int) -> dict[str, Given]:
        return self._done(lambda: self._faults.remove(number))

    def clear(self) -> None:
        self._done(self._faults.clear)

    def standing(self) -> list[dict[str, Given]]:
        return self._done(self._faults.standing)

    def _done(self, work: Callable[[], T]) -> T:
        self._thread.owner.check()
        return work() if self._is_still() else self._thread.run(_called(work))


async def _called(work: Callable[[], T]) -> T:
    return work()
