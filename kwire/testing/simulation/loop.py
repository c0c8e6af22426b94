"""An asyncio event loop for one simulated host.

It implements what asyncio programs use of a loop: callbacks, timers, futures and tasks, TCP
connections and servers (over the simulated network), executors. What it lacks - subprocesses,
signals, datagrams, file descriptors - raises NotImplementedError, as in any partial loop.

Executor jobs run inside the simulation: a job takes effect at a drawn instant after it was
submitted and its result arrives at a drawn instant after that; the jobs of one executor keep
their order, like those of a pool with one worker.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Protocol, TypeAlias, TypeVar

from kwire.testing.unbegun import drop_unbegun

T = TypeVar("T")

EXECUTOR_DELAY_MAX_S = 0.002

ProtocolFactory: TypeAlias = Callable[[], Any]
"""Makes what asyncio calls a protocol: BaseProtocol has none of the methods that are called."""


class World(Protocol):
    """The order of everything, as loops need it (`scheduler.py`)."""

    @property
    def now(self) -> float: ...

    @property
    def failures(self) -> list[str]: ...

    def uniform(self, low: float, high: float) -> float: ...

    def make_ready(self, handle: SimulatedHandle) -> None: ...

    def record(self, who: str, what: str, /) -> None: ...

    def add_timer(self, when: float, handle: SimulatedHandle) -> None: ...

    def drop(self, loop: SimulatedLoop) -> None: ...

    def run_until(self, condition: Callable[[], bool], /) -> None: ...


class Server(Protocol):
    """What programs use of `asyncio.Server`."""

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...

    def is_serving(self) -> bool: ...

    async def start_serving(self) -> None: ...


class Host(Protocol):
    """The machine on which a loop runs (`host.py`)."""

    @property
    def name(self) -> str: ...

    @property
    def disk_delay_s(self) -> float: ...

    @property
    def simulation(self) -> World: ...

    async def connect(
        self, address: str, port: int, protocol_factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, Any]: ...

    def listen(self, port: int, protocol_factory: ProtocolFactory) -> Server: ...


class SimulatedHandle:
    """A callback that waits for its turn: what programs use of asyncio's handles, for less."""

    __slots__ = ("_args", "_callback", "_context", "_when", "is_cancelled", "loop")

    def __init__(
        self,
        loop: SimulatedLoop,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        when: float = 0.0,
    ) -> None:
        self.loop = loop
        self.is_cancelled = False
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._when = when

    def cancel(self) -> None:
        """Never run it; what it holds may go."""
        self.is_cancelled = True
        self._callback, self._args = None, ()

    def cancelled(self) -> bool:
        """As asyncio's handles say it."""
        return self.is_cancelled

    def when(self) -> float:
        """The time of a timer, as `loop.time()` counts."""
        return self._when

    def run(self) -> None:
        """Run it as its loop's; what it raises goes to the loop's exception handler."""
        loop, callback = self.loop, self._callback
        if callback is None or not loop.is_alive:
            return
        previous = _get_running_loop()
        _set_running_loop(loop)
        try:
            self._context.run(callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(callback, "__qualname__", type(callback).__name__)
            loop.call_exception_handler(
                {"message": f"Exception in callback {name}", "exception": error, "handle": self}
            )
        finally:
            _set_running_loop(previous)


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The loop of one life of a host: a crashed host comes back with a new one."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._simulation = host.simulation
        self.is_alive = True
        self._exception_handler: Callable[[asyncio.AbstractEventLoop, Any], object] | None = None
        self._executor_free_at: dict[int, float] = {}
        self._executors: list[object] = []
        self._task_factory: Any = None
        self.held: deque[SimulatedHandle] | None = None  # what waits while the process is stopped

    def kill(self) -> None:
        """Nothing of this loop runs any more."""
        self.is_alive = False
        drop_unbegun(self)
        self._simulation.drop(self)

    # --- time and callbacks ---

    def time(self) -> float:
        return self._simulation.now

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        handle = SimulatedHandle(self, callback, args, context)
        if self.is_alive:
            self._simulation.make_ready(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        when = self._simulation.now + delay
        handle = SimulatedHandle(self, callback, args, context, when)
        if self.is_alive:
            self._simulation.add_timer(when, handle)
        return handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        handle = SimulatedHandle(self, callback, args, context, when)
        if self.is_alive:
            self._simulation.add_timer(when, handle)
        return handle

    # --- futures and tasks ---

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[T]:
        if self._task_factory is not None:
            made: asyncio.Task[T] = self._task_factory(self, coro)
            return made
        if not self.is_alive:
            coro.close()  # it is never begun, and nobody is to be warned of that
        return asyncio.Task(coro, loop=self, name=name or "task", context=context)

    def set_task_factory(self, factory: Any) -> None:
        self._task_factory = factory

    def get_task_factory(self) -> Any:
        return self._task_factory

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        self._simulation.run_until(task.done)
        return task.result()

    def is_running(self) -> bool:
        return _get_running_loop() is self

    def is_closed(self) -> bool:
        return not self.is_alive

    def close(self) -> None:
        self.is_alive = False

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """There is no debug mode."""

    async def shutdown_asyncgens(self) -> None:
        """Nothing to shut down: generators die with the simulation."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Executor jobs are events; there is no thread to wait for."""

    # --- errors ---

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, Any], object] | None
    ) -> None:
        self._exception_handler = handler

    def get_exception_handler(
        self,
    ) -> Callable[[asyncio.AbstractEventLoop, Any], object] | None:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        message = f"{self.host.name}: {context.get('message')}: {error!r}"
        if error is not None and error.__traceback__ is not None:
            import traceback

            message += "\n" + "".join(traceback.format_exception(error))
        self._simulation.failures.append(message)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tell of a fault; of what falls with a process that is gone there is nothing to tell."""
        if not self.is_alive:
            return
        if self._exception_handler is not None:
            self._exception_handler(self, context)
        else:
            self.default_exception_handler(context)

    # --- executors ---

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        key = self._executor_key(executor)
        simulation = self._simulation
        start = max(simulation.now, self._executor_free_at.get(key, 0.0))
        delay_max = EXECUTOR_DELAY_MAX_S + self.host.disk_delay_s
        effect_at = start + simulation.uniform(0, delay_max)
        done_at = effect_at + simulation.uniform(0, delay_max)
        self._executor_free_at[key] = effect_at
        self.call_at(effect_at, self._run_job, future, done_at, func, args)
        return future

    def _executor_key(self, executor: object) -> int:
        """A small number for an executor, by order of first use (an address would differ)."""
        for index, known in enumerate(self._executors):
            if known is executor:
                return index
        self._executors.append(executor)
        return len(self._executors) - 1

    def _run_job(
        self,
        future: asyncio.Future[T],
        done_at: float,
        func: Callable[..., T],
        args: tuple[Any, ...],
    ) -> None:
        if future.cancelled():
            return
        running = _get_running_loop()
        _set_running_loop(None)  # a worker thread has no running loop
        try:
            result = func(*args)
        except Exception as error:
            self.call_at(done_at, _fail, future, error)
        else:
            self.call_at(done_at, _complete, future, result)
        finally:
            _set_running_loop(running)

    def set_default_executor(self, executor: Any) -> None:
        """All executors are simulated."""

    # --- network ---

    async def create_connection(
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, Any]:
        if host is None or port is None or options.get("ssl"):
            raise NotImplementedError("the simulated network connects plain TCP by host and port")
        return await self.host.connect(host, int(port), protocol_factory)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: Any = None,
        port: int | None = None,
        **options: Any,
    ) -> Server:
        if options.get("ssl") or options.get("sock") is not None:
            raise NotImplementedError("the simulated network listens on plain TCP ports")
        return self.host.listen(port or 0, protocol_factory)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> list[tuple[Any, ...]]:
        name = host.decode() if isinstance(host, bytes) else host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, int(port or 0)))]


def _complete(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
