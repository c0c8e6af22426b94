"""What no simulated loop can do, refused at the call by a line that names it.

Threads, other processes, sockets of the operating system and clients in C would work at the pace
of the real world, where no seed decides: a run in which one of them is called has failed, also if
the application catches the error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NoReturn, Protocol


class CannotSimulate(RuntimeError):
    """The application called something that works outside of the simulated loop."""


class World(Protocol):
    """Where the run hears of it (`scheduler.py`)."""

    @property
    def failures(self) -> list[str]: ...


def refuse(world: World, call: str, instead: str) -> NoReturn:
    """Fail the run, and the call."""
    message = f"{call} cannot be simulated: {instead}"
    world.failures.append(message)
    raise CannotSimulate(message)


def name_of(function: Callable[..., object]) -> str:
    """How a function is called in such a line."""
    return str(getattr(function, "__qualname__", type(function).__name__))


def name_of_job(function: Callable[..., object]) -> str:
    """The call that hands a function to an executor: asyncio.to_thread wraps it in a context."""
    if isinstance(function, functools.partial):
        if name_of(function.func) == "Context.run" and function.args:
            return f"asyncio.to_thread({name_of(function.args[0])})"
        function = function.func
    return f"loop.run_in_executor({name_of(function)})"


THREADS = "it needs a thread; await it on the loop, or give the application a stand-in for it"
PROCESSES = "it needs another process; `cluster.process(...)` runs a coroutine as one"
SOCKETS = "it needs a real socket; asyncio.open_connection and asyncio.start_server are simulated"
SIGNALS = "signals are those of the simulation: loop.add_signal_handler, process.stop() and kill()"
BLOCKING = "it blocks the loop while no time passes; use `await asyncio.sleep(...)`"
C_CLIENTS = "it is a client in C with threads of its own; aiokafka runs on the simulated loop"
LOOPS = "an application has the loop that it runs on; `cluster.process(...)` has one of its own"
NAMES = "names are those of the simulation (`cluster.bootstrap`); loop.getaddrinfo is simulated"
TLS = "the simulated network has no TLS; connect without it"
