"""What the log asks of the event loop: a later turn, a timer, a job off the loop.

Kept apart so that the log runs in a test, in a tool (`kwire log verify`) and in a simulation
without asyncio. A job runs with nothing but its own arguments (DESIGN.md, decision 2).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Protocol, TypeVar

from kwire.log.files import NotBegunError
from kwire.pending import Pending

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Timer(Protocol):
    """A timer that may be cancelled."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """A later turn of the loop, timers, and jobs that leave the loop free."""

    def call_soon(self, callback: Callable[[], None]) -> object: ...
    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...
    def run(self, job: Callable[[], T]) -> Pending[T]: ...


class _NoTimer:
    def cancel(self) -> None:
        pass


class ImmediateScheduler:
    """No loop: what would come later happens now, timers never fire. For tools and tests."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        callback()
        return None

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return _NoTimer()

    def run(self, job: Callable[[], T]) -> Pending[T]:
        try:
            return Pending.completed(job())
        except Exception as error:
            return Pending.failed(error)


class LoopScheduler:
    """An asyncio loop and a one-worker executor for syncs, deletions and cold reads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor | None = None) -> None:
        self._loop = loop
        self._executor = executor
        self._is_closed = False

    def close(self) -> None:
        """The node stops: jobs under way end, no other begins and nobody hears of it."""
        self._is_closed = True
        shutdown = getattr(self._executor, "shutdown", None)
        if shutdown is not None:
            shutdown(wait=False)

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def run(self, job: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        if self._is_closed:
            return pending
        try:
            future = self._loop.run_in_executor(self._executor, job)
        except RuntimeError as error:  # no thread can be started
            return Pending.failed(NotBegunError(errno.EAGAIN, str(error)))

        def finished(done: asyncio.Future[T]) -> None:
            if done.cancelled():
                pending.cancel()
                return
            error = done.exception()
            if error is None:
                pending.complete(done.result())
            elif isinstance(error, Exception):
                pending.fail(error)
            else:
                pending.fail(RuntimeError(f"a job ended by {error!r}"))

        future.add_done_callback(finished)
        return pending
