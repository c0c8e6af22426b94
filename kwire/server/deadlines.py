"""Requests that wait: for data (fetch), for replication (produce), and for the clock.

A waiter is parked at every partition it waits for; the partition wakes it when its log or high
watermark moves (`kwire/replica/partition.py`). Deadlines of all waiters are one heap with one
timer of the loop. A waiter that fires or whose connection closes is unlinked everywhere at once.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

COMPACT_AT = 1024


class Deadline:
    """One entry of the heap; `cancel()` forgets it."""

    __slots__ = ("_heap", "callback")

    def __init__(self, heap: DeadlineHeap, callback: Callable[[], None]) -> None:
        self._heap = heap
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Never run the callback; does nothing once it ran."""
        if self.callback is not None:
            self.callback = None
            self._heap.forgotten()


class DeadlineHeap:
    """Many deadlines on one timer of the loop; equal ones run in the order they were added."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, Deadline]] = []  # (when, order of adding, entry)
        self._order = 0
        self._forgotten = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = 0.0

    def __len__(self) -> int:
        """How many deadlines are waiting."""
        return len(self._heap) - self._forgotten

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Deadline:
        """Run `callback()` in `delay_ms` milliseconds."""
        self._order += 1
        at_s = self._loop.time() + delay_ms / 1000
        deadline = Deadline(self, callback)
        heapq.heappush(self._heap, (at_s, self._order, deadline))
        if self._timer is None or at_s < self._timer_at_s:
            self._arm()
        return deadline

    def forgotten(self) -> None:
        """An entry was cancelled; its memory goes when half of the heap are such."""
        self._forgotten += 1
        if self._forgotten > COMPACT_AT and self._forgotten * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._forgotten = 0

    def close(self) -> None:
        """Forget everything."""
        self._heap.clear()
        self._forgotten = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._forgotten -= 1
        if heap:
            self._timer_at_s = heap[0][0]
            self._timer = self._loop.call_at(self._timer_at_s, self._run)

    def _run(self) -> None:
        self._timer = None
        heap = self._heap
        now_s = self._loop.time()
        while heap and (heap[0][2].callback is None or heap[0][0] <= now_s):
            deadline = heapq.heappop(heap)[2]
            callback = deadline.callback
            if callback is None:
                self._forgotten -= 1
                continue
            deadline.callback = None
            callback()
            heap = self._heap
        self._arm()
