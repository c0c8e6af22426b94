"""Processes of an application: coroutines with a host and a loop of their own, ended as hard as
processes end, and started anew.

A process that is killed runs no line more, no `finally` either: its tasks are kept, suspended,
until the run is over. What it shares with others are plain Python objects, which stand for what
outlives it (a database); its connections are reset.
"""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Awaitable, Callable
from typing import Protocol

from kwire.testing.simulation.application_loop import ApplicationLoop
from kwire.testing.simulation.host import SimulatedHost
from kwire.testing.simulation.loop import SimulatedLoop
from kwire.testing.simulation.refusals import CannotSimulate

GRACE_S = 30.0
FAULTS_OF_CODE = (
    AssertionError,
    ImportError,
    NameError,
    SyntaxError,
    TypeError,
    UnboundLocalError,
    CannotSimulate,
)
"""Errors that no broker causes: they end the run instead of the process. Not so assertions of
aiokafka's own: it asserts that metadata have brokers, which those of a broker that has just
started need not."""
CLIENT = "aiokafka."


class World(Protocol):
    """What processes need of the run (`cluster.py`)."""

    def note(self, what: str, who: str) -> None: ...

    def fail(self, message: str, error: BaseException | None = None) -> None: ...

    def keep(self, tasks: list[asyncio.Task[object]]) -> None: ...

    @property
    def outside(self) -> SimulatedLoop: ...


class Process:
    """One process of the application (`cluster.process(...)`)."""

    def __init__(
        self,
        world: World,
        host: SimulatedHost,
        main: Callable[[], Awaitable[object]],
        restart_after_s: float | None,
    ) -> None:
        self.name = host.name
        self.lives = 0
        self.is_finished = False
        self._world = world
        self._host = host
        self._main = main
        self._restart_after_s = restart_after_s
        self._task: asyncio.Task[object] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._is_wanted = False

    def __repr__(self) -> str:
        return f"Process({self.name!r})"

    # -- what it is doing

    @property
    def is_running(self) -> bool:
        """Whether it runs, or is paused."""
        return self._task is not None and self._host.up

    @property
    def is_paused(self) -> bool:
        return self._host.up and self._host.loop.held is not None

    @property
    def loop(self) -> ApplicationLoop:
        """Its present loop."""
        loop = self._host.loop
        assert isinstance(loop, ApplicationLoop)
        return loop

    async def finished(self) -> None:
        """Wait until its coroutine has returned, without having been told to stop."""
        while not self.is_finished:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    # -- what is done to it

    def start(self) -> None:
        """Begin a life; nothing while it runs."""
        if self.is_running:
            return
        self.is_finished = False
        self._is_wanted = True
        if self.lives or not self._host.up:
            self._host.restart()
        self.lives += 1
        self._world.note("starts", self.name)
        self._task = self._host.loop.create_task(self._run())
        self._task.add_done_callback(self._ended)

    def kill(self, *, power_loss: bool = False, restart_after_s: float | None = None) -> None:
        """End it at this instant; with `power_loss` its peers hear nothing of it. It starts again
        when `restart_after_s` has passed; None is what `cluster.process` was told."""
        if not self.is_running:
            return
        self._end(power_loss=power_loss)
        after_s = self._restart_after_s if restart_after_s is None else restart_after_s
        if after_s is not None:
            life = self.lives
            self._world.outside.call_later(after_s, self._start_again, life)

    def restart(self) -> None:
        """Kill it and start it at once."""
        self.kill(restart_after_s=0.0)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """As SIGTERM does: its handler of that signal is called, else its coroutine is cancelled.
        After `grace_s`, or when this is cancelled, it is killed. It does not start again by itself.
        """
        if not self.is_running:
            return
        self._is_wanted = False
        life = self.lives
        self._world.note("is told to stop", self.name)
        self.loop.call_soon(self._terminate)
        try:
            for _ in range(int(grace_s * 10)):
                await asyncio.sleep(0.1)
                if not self.is_running or self.lives != life:
                    return
        finally:
            if self.is_running and self.lives == life:
                self._end()

    def pause(self) -> None:
        """As SIGSTOP does: it keeps its connections and knows nothing of the time that passes."""
        if self.is_running and not self.is_paused:
            self._host.freeze()

    def resume(self) -> None:
        """End a pause."""
        if self.is_paused:
            self._host.thaw()

    def skew_clock(self, skew_ms: int) -> None:
        """Its wall clock is wrong by so much."""
        self._host.clock_skew_ms = skew_ms

    def forget(self) -> None:
        """Let go of its coroutine, when the run is over."""
        self._task = None
        self._main = _nothing
        self._waiters.clear()

    # -- inside

    async def _run(self) -> object:
        return await self._main()

    def _terminate(self) -> None:
        handlers = self.loop.signal_handlers
        handler = handlers.get(signal.SIGTERM) or handlers.get(signal.SIGINT)
        if handler is not None:
            handler()
        elif self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[object]) -> None:
        """Its coroutine is over: the process ends, when this callback has."""
        self._world.outside.call_soon(self._exit, task, self.lives)

    def _exit(self, task: asyncio.Task[object], life: int) -> None:
        if self.lives != life or self._task is not task:
            return
        error = None if task.cancelled() else task.exception()
        if error is None:
            self._world.note("has returned" if not task.cancelled() else "was cancelled", self.name)
            self._end(quietly=True)
            if self._is_wanted:
                self._finish()
            return
        self._world.note(f"fails: {type(error).__name__}: {error}", self.name)
        if is_fault_of_code(error) or self._restart_after_s is None:
            self._world.fail(f"process {self.name} fails", error)
        self._end(quietly=True)
        if self._is_wanted and self._restart_after_s is not None:
            self._world.outside.call_later(self._restart_after_s, self._start_again, life)

    def _finish(self) -> None:
        self.is_finished = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            resolve(waiter)

    def _start_again(self, life: int) -> None:
        if self.lives == life and self._is_wanted and not self.is_finished:
            self.start()

    def _end(self, *, power_loss: bool = False, quietly: bool = False) -> None:
        self._world.keep(sorted(asyncio.all_tasks(self._host.loop), key=hash))
        self._task = None
        if not quietly:
            self._world.note("loses power" if power_loss else "is killed", self.name)
        self._host.crash(power_loss=power_loss)


def is_fault_of_code(error: BaseException) -> bool:
    """See `FAULTS_OF_CODE`."""
    if isinstance(error, AssertionError) and error.__traceback__ is not None:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith(CLIENT):
            return False
    return isinstance(error, FAULTS_OF_CODE)


async def _nothing() -> None:
    """What is left of a process whose run is over."""


def resolve(future: asyncio.Future[None]) -> None:
    """Wake who waits for it, on the loop that it waits on."""
    if not future.done():
        future.set_result(None)
