"""A trace that is written beside an event loop, which never waits for it.

What cannot be written as fast as it happens is left out beyond HELD_BYTES_MAX, and a line says how
much that was. When the file cannot be written, the trace ends, and `failed(reason)` is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from kwire.trace.events import LOST, Event
from kwire.trace.files import TraceWriter

HELD_BYTES_MAX = 64 << 20
LINGER_S = 0.1


class BackgroundTrace:
    """See the module. `executor` runs one job at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        writer: TraceWriter,
        failed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._writer = writer
        self._failed = failed
        self._lines: list[str] = []
        self._held_bytes = 0
        self._lost = 0
        self._newest_ms = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._job: asyncio.Future[None] | None = None
        self._has_ended = False

    def write(self, event: Event) -> None:
        """Write it soon."""
        if self._has_ended:
            return
        self._newest_ms = event.ms
        if self._held_bytes > HELD_BYTES_MAX:
            self._lost += 1
            return
        self._tell_lost()
        line = event.to_line()
        self._lines.append(line)
        self._held_bytes += len(line)
        if self._timer is None and self._job is None:
            self._timer = self._loop.call_later(LINGER_S, self._begin)

    def _tell_lost(self) -> None:
        if self._lost:
            note, self._lost = f"{self._lost} events are left out: the file is too slow", 0
            self._lines.append(Event(LOST, self._newest_ms, note=note).to_line())

    def _begin(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        held_bytes = self._held_bytes
        self._job = self._loop.run_in_executor(self._executor, self._writer.write, lines)
        self._job.add_done_callback(lambda done: self._written(done, held_bytes))

    def _written(self, done: asyncio.Future[None], held_bytes: int) -> None:
        self._job = None
        self._held_bytes -= held_bytes
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._end(error)
        elif self._lines and not self._has_ended:
            self._begin()

    def _end(self, error: BaseException) -> None:
        self._has_ended = True
        self._lines.clear()
        reason = error.strerror if isinstance(error, OSError) else None
        self._failed(f"{self._writer.path} cannot be written, the trace ends: {reason or error}")

    async def close(self) -> None:
        """Write the rest, and close the file."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_ended:
            self._tell_lost()
            if self._lines and self._job is None:
                self._begin()
        while self._job is not None:
            await asyncio.wait([self._job])
        try:
            await self._loop.run_in_executor(self._executor, self._writer.close)
        except OSError as error:
            if not self._has_ended:
                self._end(error)
