"""The loop of one process of an application: all that asyncio has, as far as it can be simulated.

It differs from a broker's loop in three ways. What needs a thread, a process or a socket is
refused (`refusals.py`). Each callback takes some microseconds of the simulated time, so that a
program that spins until a deadline gets there. Tasks and futures have hashes by their number:
sets of them have one order in any process.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextvars import Context
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from kwire.testing.simulation import refusals
from kwire.testing.simulation.loop import (
    Host,
    ProtocolFactory,
    Server,
    SimulatedHandle,
    SimulatedLoop,
)

T = TypeVar("T")

CLIENT_FOLDER = "aiokafka"
CALLBACK_S = 5e-6
TIMER_MIN_S = 1e-6


class NumberedTask(asyncio.Task[T]):
    """A task whose hash is its number on its loop."""

    number: int

    def __new__(cls, coro: Coroutine[Any, Any, T], *, loop: ApplicationLoop, **_: Any) -> Any:
        task = super().__new__(cls)
        task.number = loop.next_number()
        return task

    def __hash__(self) -> int:
        return self.number


class NumberedFuture(asyncio.Future[T]):
    """A future whose hash is its number on its loop."""

    number: int

    def __new__(cls, *, loop: ApplicationLoop) -> Any:
        future = super().__new__(cls)
        future.number = loop.next_number()
        return future

    def __hash__(self) -> int:
        return self.number


class ApplicationLoop(SimulatedLoop):
    """See above. `signal_handlers` are those that the application has added, by signal.

    `arm(count, act)` has `act()` called by the world when that many callbacks more have been
    queued here: how faults come between any two steps of the application.
    """

    def __init__(self, host: Host, advance: Callable[[float], None]) -> None:
        super().__init__(host)
        self.signal_handlers: dict[int, Callable[[], object]] = {}
        self._advance = advance
        self._number = 0
        self._armed: list[tuple[int, Callable[[], None]]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """What a task of the client's own leaves unread, as a commit that nobody waits for any
        more, is logged in earnest: the application knows nothing of it."""
        task = context.get("future")
        if isinstance(task, asyncio.Task) and _is_of_client(task):
            what = f"a task of the client fails: {context.get('exception')!r}"
            self._simulation.record(self.host.name, what)
        else:
            super().default_exception_handler(context)

    def next_number(self) -> int:
        """The next task's or future's."""
        self._number += 1
        return self._number

    def arm(self, count: int, act: Callable[[], None]) -> None:
        """See the class."""
        self._armed.append((count, act))

    # --- callbacks ---

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        if self.is_alive:
            self._advance(CALLBACK_S)
            if self._armed:
                self._count_down()
        return super().call_soon(callback, *args, context=context)

    call_soon_threadsafe = call_soon

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        return super().call_later(max(delay, TIMER_MIN_S), callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimulatedHandle:
        earliest = self.time() + TIMER_MIN_S
        return super().call_at(max(when, earliest), callback, *args, context=context)

    def _count_down(self) -> None:
        armed, self._armed = self._armed, []
        for count, act in armed:
            if count > 1:
                self._armed.append((count - 1, act))
            else:
                act()

    # --- futures and tasks ---

    def create_future(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = NumberedFuture(loop=self)
        return future

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Any = None,
        **_: Any,
    ) -> asyncio.Task[T]:
        if self._task_factory is not None:
            made: asyncio.Task[T] = self._task_factory(self, coro)
            return made
        if not self.is_alive:
            coro.close()  # it is never begun, and nobody is to be warned of that
        task: asyncio.Task[T] = NumberedTask(coro, loop=self, name=name or "task", context=context)
        return task

    # --- signals: kept, for a stop in order ---

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., object], *args: Any
    ) -> None:
        self.signal_handlers[int(sig)] = functools.partial(callback, *args)

    def remove_signal_handler(self, sig: int) -> bool:
        return self.signal_handlers.pop(int(sig), None) is not None

    # --- what cannot be simulated ---

    def refuse(self, call: str, instead: str) -> NoReturn:
        """Fail the run, and the call."""
        refusals.refuse(self._simulation, call, instead)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        self.refuse(refusals.name_of_job(func), refusals.THREADS)

    async def create_connection(
        self,
        protocol_factory: ProtocolFactory,
        host: str | None = None,
        port: int | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, Any]:
        if options.get("ssl"):
            self.refuse("a connection with ssl=", refusals.TLS)
        if options.get("sock") is not None:
            self.refuse("loop.create_connection(sock=...)", refusals.SOCKETS)
        return await super().create_connection(protocol_factory, host, port, **options)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: ProtocolFactory,
        host: Any = None,
        port: int | None = None,
        **options: Any,
    ) -> Server:
        if options.get("ssl"):
            self.refuse("a server with ssl=", refusals.TLS)
        if options.get("sock") is not None:
            self.refuse("loop.create_server(sock=...)", refusals.SOCKETS)
        return await super().create_server(protocol_factory, host, port, **options)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        return str(sockaddr[0]), str(sockaddr[1])


def _refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    def refused(self: ApplicationLoop, *args: Any, **options: Any) -> NoReturn:
        self.refuse(f"loop.{name}", instead)

    return refused


REFUSED = {
    refusals.PROCESSES: ("subprocess_exec", "subprocess_shell"),
    refusals.SOCKETS: (
        *("add_reader", "remove_reader", "add_writer", "remove_writer"),
        *("sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto"),
        *("sock_connect", "sock_accept", "sock_sendfile", "sendfile", "connect_accepted_socket"),
        *("create_datagram_endpoint", "create_unix_connection", "create_unix_server"),
        *("connect_read_pipe", "connect_write_pipe"),
    ),
    refusals.TLS: ("start_tls",),
}
for _instead, _names in REFUSED.items():
    for _name in _names:
        setattr(ApplicationLoop, _name, _refusing(_name, _instead))


def _is_of_client(task: asyncio.Task[object]) -> bool:
    """Whether the coroutine of a task is one of the client's files."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and CLIENT_FOLDER in Path(code.co_filename).parts
