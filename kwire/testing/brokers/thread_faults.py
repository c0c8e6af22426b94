"""The faults on command of a broker that runs in a thread: asked on its loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kwire.faults.kinds import Given
from kwire.node.faults import NodeFaults
from kwire.testing.loop_thread import LoopThread

T = TypeVar("T")


class ThreadFaults:
    """See `FaultControl`."""

    def __init__(self, thread: LoopThread, faults: NodeFaults) -> None:
        self._thread = thread
        self._faults = faults

    def add(self, given: Mapping[str, Given]) -> dict[str, Given]:
        return self._thread.run(self._faults.add(given))

    def remove(self, number: int) -> dict[str, Given]:
        return self._thread.run(_called(lambda: self._faults.remove(number)))

    def clear(self) -> None:
        self._thread.run(_called(self._faults.clear))

    def standing(self) -> list[dict[str, Given]]:
        return self._thread.run(_called(self._faults.standing))


async def _called(work: Callable[[], T]) -> T:
    return work()
