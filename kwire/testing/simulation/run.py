"""One run: the world of a seed, the stand-ins that its application sees, a test on its loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import sys
import warnings
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine, Iterator
from typing import Protocol

from kwire.clock import SeededRandom
from kwire.testing.simulation import real_world
from kwire.testing.simulation.aiokafka_seams import seams
from kwire.testing.simulation.cluster import SimulatedCluster
from kwire.testing.simulation.host import START_WALL_MS, SimulatedHost
from kwire.testing.simulation.options import Options
from kwire.testing.simulation.scheduler import Simulation
from kwire.testing.simulation.stand_ins import StandIns

BOOTED_S = 1000.0  # what a monotonic clock shows at the start
MS_NS = 1_000_000
NS = 1_000_000_000
COLLECT_EACH_S = 60.0
LIMIT_MINUTES = 30.0
FIRST_PROCESS_ID = 1000
WAITS_MAX = 100


class RunFailed(AssertionError):
    """A run failed: something in it raised, or did not end."""


class _RunOver(BaseException):
    """Ends a coroutine whose run is over."""


class OnHost(Protocol):
    """A loop that knows its host."""

    @property
    def host(self) -> SimulatedHost: ...


class Run:
    """`open()` starts the brokers, `until` lets time pass, `close()` ends everything."""

    def __init__(self, options: Options) -> None:
        self.simulation = Simulation(options.seed, keep_transcript=False)
        self.cluster = SimulatedCluster(options, self.simulation)
        self.limit_s = (options.minutes + LIMIT_MINUTES) * 60
        self._random = SeededRandom(options.seed * 2 + 2)
        more = real_world.replacements(self.simulation) + seams()
        self._stand_ins = StandIns(self, more)
        self._finder = real_world.NoImportOfCClients(self.simulation)
        self._warnings = warnings.catch_warnings()
        self._collected = gc.isenabled()

    # -- what stand-ins ask

    def monotonic_s(self) -> float:
        return BOOTED_S + self.simulation.now

    def wall_ns(self) -> int:
        host = self._host()
        skew_ms = 0 if host is None else host.clock_skew_ms
        return (START_WALL_MS + skew_ms) * MS_NS + int(self.simulation.now * NS)

    def look(self, seconds: float) -> None:
        self.simulation.advance(seconds)

    def random_bytes(self, size_bytes: int) -> bytes:
        return self._random.random_bytes(size_bytes)

    def process_id(self) -> int:
        host = self._host()
        return FIRST_PROCESS_ID + (0 if host is None else host.index)

    def host_name(self) -> str:
        host = self._host()
        return "localhost" if host is None else host.name

    def _host(self) -> SimulatedHost | None:
        return getattr(_get_running_loop(), "host", None)

    # -- its course

    def open(self) -> None:
        """The brokers run, and the faults begin."""
        self._warnings.__enter__()
        # Clients that are killed close nothing, and aiokafka forgets connections that fail.
        warnings.simplefilter("ignore", ResourceWarning)
        self._collected = gc.isenabled()
        gc.freeze()
        gc.disable()  # when objects die is part of the history: only at the times below
        self._stand_ins.begin()
        sys.meta_path.insert(0, self._finder)
        with self._no_running_loop():
            self.cluster.begin()
        self.cluster.outside.call_later(COLLECT_EACH_S, self._collect)

    def _collect(self) -> None:
        gc.collect()
        self.cluster.outside.call_later(COLLECT_EACH_S, self._collect)

    def until(self, done: Callable[[], bool], limit_s: float) -> None:
        """Let time pass; RunFailed when something failed, or `done()` does not hold in time."""
        simulation = self.simulation
        step, failures = simulation.step, simulation.failures
        end_s = simulation.now + limit_s
        with self._no_running_loop():
            while not done():
                if not step():
                    raise RunFailed("the test waits for what can never happen")
                if failures:
                    raise RunFailed(failures[0]) from simulation.failed_with
                if simulation.now > end_s:
                    raise RunFailed(
                        f"the test does not end within {limit_s / 60:g} simulated minutes"
                    )

    @contextlib.contextmanager
    def _no_running_loop(self) -> Iterator[None]:
        running = _get_running_loop()
        _set_running_loop(None)
        try:
            yield
        finally:
            _set_running_loop(running)

    def execute(self, main: Coroutine[object, object, object]) -> None:
        """Run a test's coroutine to its end, and raise what it raises."""
        task = self.cluster.host.loop.create_task(main)
        self.until(task.done, self.limit_s)
        task.result()

    def close(self) -> None:
        """End it: what is suspended is closed, and time and chance are the machine's again."""
        simulation, cluster = self.simulation, self.cluster
        kept = list(cluster.kept)
        for host in simulation.hosts.values():
            if host.up:
                if host.is_application:
                    kept += sorted(asyncio.all_tasks(host.loop), key=hash)
                host.loop.kill()
            simulation.network.host_crashed(host, silently=True)
        cluster.nodes.nodes.clear()
        cluster.kept.clear()
        warnings.simplefilter("ignore")  # of coroutines that are closed here
        try:
            _close(kept)
            cluster.forget()
            simulation.forget()
            gc.unfreeze()
            gc.collect()
        finally:
            self._stand_ins.end()
            sys.meta_path.remove(self._finder)
            self._warnings.__exit__(None, None, None)
            if self._collected:
                gc.enable()


def _close(tasks: list[asyncio.Task[object]]) -> None:
    """Their `finally` clauses run, each as far as it gets without waiting; nothing hears of it. A
    coroutine that is left in the middle would be closed, and complained of, when it is collected.
    """
    running = _get_running_loop()
    try:
        while tasks:
            task = tasks.pop()
            coroutine = task.get_coro()
            _set_running_loop(task.get_loop())
            with contextlib.suppress(Exception, _RunOver, GeneratorExit, asyncio.CancelledError):
                # `close()` would leave what waits in a `finally` suspended, and end who awaits it.
                for _ in range(WAITS_MAX if inspect.iscoroutine(coroutine) else 0):
                    coroutine.throw(_RunOver())
            with contextlib.suppress(Exception, GeneratorExit, asyncio.CancelledError):
                if coroutine is not None:
                    coroutine.close()
    finally:
        _set_running_loop(running)
