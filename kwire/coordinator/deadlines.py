"""Deadlines by key: timers as data.

Heartbeats move a deadline back all the time and almost none ever passes. So a deadline that
moves back only changes the dictionary; the heap entry left at the earlier time is put at its
right place when it surfaces. Equal deadlines come in the order in which they were scheduled.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """A set of keys with a deadline each, in milliseconds."""

    __slots__ = ("_heap", "_scheduled", "_sequence")

    def __init__(self) -> None:
        # key -> (deadline, sequence, deadline of its heap entry)
        self._scheduled: dict[Key, tuple[int, int, int]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._scheduled)

    def __contains__(self, key: Key) -> bool:
        return key in self._scheduled

    def deadline(self, key: Key) -> int | None:
        """When `key` is due, None when it is not scheduled."""
        scheduled = self._scheduled.get(key)
        return None if scheduled is None else scheduled[0]

    def schedule(self, key: Key, deadline_ms: int) -> None:
        """Make `key` due at `deadline_ms`, in place of any deadline it had."""
        self._sequence = sequence = self._sequence + 1
        previous = self._scheduled.get(key)
        if previous is not None and previous[2] <= deadline_ms:
            self._scheduled[key] = (deadline_ms, sequence, previous[2])
            return
        self._scheduled[key] = (deadline_ms, sequence, deadline_ms)
        heapq.heappush(self._heap, (deadline_ms, sequence, key))
        if len(self._heap) > 64 + 2 * len(self._scheduled):
            self._rebuild()

    def cancel(self, key: Key) -> None:
        """Forget `key`; does nothing when it is not scheduled."""
        self._scheduled.pop(key, None)
        if len(self._heap) > 64 + 2 * len(self._scheduled):
            self._rebuild()

    def next_deadline(self) -> int | None:
        """The earliest deadline, None when nothing is scheduled."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Key | None:
        """Take the earliest key whose deadline is not after `now_ms`."""
        self._settle()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._scheduled[key]
        return key

    def _settle(self) -> None:
        """Bring a valid entry to the top of the heap."""
        heap = self._heap
        while heap:
            deadline, sequence, key = heap[0]
            scheduled = self._scheduled.get(key)
            if scheduled is None or scheduled[2] != deadline:
                heapq.heappop(heap)
            elif scheduled[:2] != (deadline, sequence):
                self._scheduled[key] = (scheduled[0], scheduled[1], scheduled[0])
                heapq.heapreplace(heap, (scheduled[0], scheduled[1], key))
            else:
                return

    def _rebuild(self) -> None:
        self._scheduled = {k: (d, s, d) for k, (d, s, _) in self._scheduled.items()}
        self._heap = [(d, s, k) for k, (d, s, _) in self._scheduled.items()]
        heapq.heapify(self._heap)
