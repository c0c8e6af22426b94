"""`async with simulated_cluster(...)` in any coroutine: its body runs on a simulated loop.

The task of the real loop is suspended at the `async with`; its coroutine is driven from there by
a task of the simulated loop, in one callback of the real one, until the body ends. So it needs no
plugin: `asyncio.run`, pytest-asyncio and others run it.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator, Iterable, Mapping
from types import TracebackType
from typing import Any

from kwire.testing.brokers.runner import Setting
from kwire.testing.simulation.cluster import SimulatedCluster
from kwire.testing.simulation.options import Options
from kwire.testing.simulation.run import Run, RunFailed

MINUTES = 10.0
ENDING_LIMIT_S = 600.0


class _Ended(BaseException):
    """Thrown into a body whose run has failed: no `except Exception` goes on."""


class simulated_cluster:
    """Brokers and everything on the loop, from a seed: `async with` gives a `SimulatedCluster`.

    For `minutes` of simulated time faults are drawn from the seed: of the kinds that `faults`
    names, of all by default, none with `minutes=0`. `config` are Kafka's configs. ValueError
    names an option that cannot be.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        minutes: float = MINUTES,
        brokers: int = 3,
        faults: Iterable[str] | None = None,
        config: Mapping[str, Setting] | None = None,
    ) -> None:
        options = Options.checked(
            seed=seed, minutes=minutes, brokers=brokers, faults=faults, config=config
        )
        self._run = Run(options)
        self._is_open = False
        self._failure: RunFailed | None = None
        self._end = object()

    async def __aenter__(self) -> SimulatedCluster:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None or hasattr(loop, "refuse"):
            raise RuntimeError("simulated_cluster: it needs a task of a real loop, not a simulated")
        coroutine = task.get_coro()
        assert coroutine is not None
        self._run.open()
        self._is_open = True
        outer: asyncio.Future[None] = loop.create_future()
        loop.call_soon(self._simulate, coroutine, outer)
        await _handed_over(outer)
        return self._run.cluster

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_open:
            await _yielding(self._end)
        if self._failure is not None:
            failure = self._failure
            raise RunFailed(_told(failure, self._run.cluster)) from failure.__cause__

    def _simulate(self, coroutine: Any, outer: asyncio.Future[None]) -> None:
        """A callback of the real loop, as long as the body."""
        run = self._run
        body = _Body(coroutine, self._end)
        task = run.cluster.host.loop.create_task(body.drive())
        try:
            run.until(task.done, run.limit_s)
        except RunFailed as failure:
            self._failure = failure
            self._end_body(body, task)
        finally:
            run.close()
            self._is_open = False
            if not outer.done():
                if task.done():
                    outer.set_result(None)
                else:
                    outer.set_exception(_Ended())

    def _end_body(self, body: _Body, task: asyncio.Task[None]) -> None:
        """What the body has behind `finally` runs before the world ends."""
        failures = self._run.simulation.failures
        body.is_over = True
        task.cancel()
        try:
            failures.clear()
            self._run.until(task.done, ENDING_LIMIT_S)
        except RunFailed:
            pass  # it does not end, which is not what failed first


class _Body:
    """Drives a coroutine that another loop's task has begun."""

    def __init__(self, coroutine: Any, end: object) -> None:
        self.is_over = False
        self._coroutine = coroutine
        self._end = end

    @types.coroutine
    def drive(self) -> Generator[Any, None, None]:
        """Until it yields the end."""
        error: BaseException | None = None
        while True:
            if error is None:
                waits_for = self._coroutine.send(None)
            else:
                waits_for = self._coroutine.throw(error)
            if waits_for is self._end:
                return
            error = None
            try:
                yield waits_for
            except BaseException as raised:
                error = _Ended() if self.is_over else raised


@types.coroutine
def _handed_over(outer: Any) -> Generator[Any, None, None]:
    """Wait for `outer` as `await` does, but be driven by whoever sends next."""
    outer._asyncio_future_blocking = True
    yield outer


@types.coroutine
def _yielding(end: object) -> Generator[object, None, None]:
    yield end


def _told(failure: RunFailed, cluster: SimulatedCluster) -> str:
    return f"{failure} (seed {cluster.seed})\n{cluster.history.tail()}"
