"""Replies that were parked leave a few a turn of the loop.

When a group of a thousand members has come together, a thousand JoinGroup or SyncGroup requests are
answered by one operation. What it decides is decided at once; to encode and to send all of that in
one turn would have everybody else wait for tens of milliseconds. They leave in the order in which
they were released, each in its connection's place.
"""

from __future__ import annotations

from collections import deque

from kwire.coordinator.partition import HeldReply
from kwire.coordinator.shard_interface import Loop

REPLIES_A_TURN = 50


class ParkedReplies:
    """Those of all partitions of a runtime: what they wait for is committed."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._left = REPLIES_A_TURN
        self._waiting: deque[HeldReply] = deque()
        self._is_armed = False

    def release(self, held: HeldReply) -> None:
        """Release it in this turn, or in a later one."""
        if self._left and not self._waiting:
            self._left -= 1
            self._arm()
            held.release()
        else:
            self._waiting.append(held)

    def release_all(self) -> None:
        """Nobody turns the loop any more."""
        while self._waiting:
            self._waiting.popleft().release()

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """The next turn."""
        self._is_armed = False
        due = min(len(self._waiting), REPLIES_A_TURN)
        self._left = REPLIES_A_TURN - due
        if due:
            self._arm()
        for _ in range(due):
            if self._waiting:  # else what was released has closed the runtime
                self._waiting.popleft().release()
