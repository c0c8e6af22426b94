"""When a connection reads nothing, and when it starts nothing of what it has received.

It stops reading at the bound of queued requests or bytes, of unsent reply bytes, of memory, while
it waits to be served, and while its client has to wait for a quota. What is received already
starts when nothing blocks it any more.
"""

from __future__ import annotations

import asyncio
from collections import deque

from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.server.slots import HELD, LATER, MUTED, Slot
from kwire.turn_budget import TurnBudget

QUEUED_REQUESTS_MAX = 64
QUEUED_BYTES_MAX = 1024 * 1024


class PausedConnection(FrameConnection):
    """See the module. A subclass runs the queue (`_run_queue`)."""

    __slots__ = (
        "_blocking",
        "_closed",
        "_has_turn",
        "_is_gone",
        "_loop",
        "_memory_awaited",
        "_queue",
        "_queued_bytes",
        "_reading_paused",
        "_throttle_timer",
        "_throttled_until_s",
        "_turns",
        "_writing_paused",
    )

    def __init__(
        self,
        pool: BufferPool,
        frame_bytes_max: int,
        loop: asyncio.AbstractEventLoop,
        turns: TurnBudget,
    ) -> None:
        super().__init__(pool, frame_bytes_max)
        self._loop = loop
        self._turns = turns
        self._has_turn = False  # the next request may start now
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._blocking: Slot | None = None
        """The request that the next one waits for, or what stands in its place."""
        self._writing_paused = False
        self._reading_paused = False
        self._memory_awaited = False
        self._throttled_until_s = 0.0
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._is_gone = False  # its client sends nothing and hears nothing

    def _run_queue(self) -> None:
        """Start what nothing blocks."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._blocking is None:
            self._run_queue()
        self._adjust_reading()

    def _throttle(self, wait_ms: int) -> None:
        """Run nothing more and read nothing for so long, also of what has been received."""
        if self._is_gone:
            return
        until_s = max(self._throttled_until_s, self._loop.time() + wait_ms / 1000)
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        self._throttled_until_s = until_s
        self._throttle_timer = self._loop.call_at(until_s, self._throttle_ended)
        if self._blocking is None:
            self._blocking = MUTED
        self._adjust_reading()

    def _throttle_ended(self) -> None:
        self._throttle_timer = None
        if self._blocking is MUTED:
            self._blocking = None
            self._run_queue()
        self._adjust_reading()

    def _is_for_later(self, body: memoryview) -> bool:
        """Whether this request starts in a later turn of the loop: so many have in this one."""
        if self._has_turn or self._turns.take():
            self._has_turn = False
            return False
        self._blocking = LATER
        self._queue.appendleft(bytes(body))
        self._queued_bytes += len(body)
        self._turns.wait(self._turn_came)
        self._adjust_reading()
        return True

    def _turn_came(self) -> None:
        if self._blocking is LATER and not self._closed:
            self._blocking = None
            self._has_turn = True
            self._run_queue()
            self._has_turn = False

    def memory_awaited(self, waits: bool) -> None:
        self._memory_awaited = waits
        self._adjust_reading()

    def hold(self, is_held: bool) -> None:
        """Start nothing while it waits to be served (`connection_admission.py`)."""
        if is_held:
            self._blocking = HELD
            self._loop.call_soon(self._adjust_reading)  # uvloop begins to read behind `opened`
        elif self._blocking is HELD:
            self._blocking = None
            self._run_queue()

    def _adjust_reading(self) -> None:
        """Read while there is room for what would be read."""
        full = (
            self._writing_paused
            or self._memory_awaited
            or self._blocking is HELD
            or self._throttle_timer is not None
            or len(self._queue) >= QUEUED_REQUESTS_MAX
            or self._queued_bytes >= QUEUED_BYTES_MAX
        )
        if full != self._reading_paused and not self._closed and not self.transport.is_closing():
            self._reading_paused = full
            if full:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()
