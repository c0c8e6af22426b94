"""The stand-ins that refuse: threads, processes, sockets, clients in C, and what blocks.

They refuse in an application's code only; the brokers of the run, and other threads, have the
real ones.
"""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import multiprocessing.process
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kwire.testing.simulation import refusals
from kwire.testing.simulation.stand_ins import Replacement, current, in_application

C_CLIENT_MODULES = {
    "confluent_kafka": ("Producer", "Consumer", "SerializingProducer", "DeserializingConsumer"),
    "confluent_kafka.cimpl": ("Producer", "Consumer"),
    "confluent_kafka.admin": ("AdminClient",),
    "confluent_kafka.aio": ("AIOProducer", "AIOConsumer"),
}


SELECTORS = (
    "SelectSelector",
    "PollSelector",
    "EpollSelector",
    "DevpollSelector",
    "KqueueSelector",
)

FUNCTIONS: dict[tuple[ModuleType, str], tuple[str, ...]] = {
    (os, refusals.PROCESSES): (
        *("fork", "forkpty", "posix_spawn", "posix_spawnp"),
        *("execv", "execve", "spawnv", "spawnve", "spawnvp", "spawnvpe"),
    ),
    # Whoever has these process ids in the real world is none of the application's.
    (os, refusals.SIGNALS): ("kill", "killpg", "abort", "_exit"),
    (signal, refusals.SIGNALS): (
        *("signal", "raise_signal", "pthread_kill", "alarm", "setitimer", "siginterrupt"),
        *("pause", "sigwait", "sigwaitinfo", "sigtimedwait", "pthread_sigmask"),
    ),
    (_thread, refusals.THREADS): ("start_new_thread", "start_new", "start_joinable_thread"),
    (select, refusals.SOCKETS): ("select", "poll", "epoll", "kqueue", "devpoll"),
    (socket, refusals.NAMES): ("getaddrinfo", "gethostbyname", "gethostbyaddr", "gethostbyname_ex"),
}


def replacements(world: refusals.World) -> list[Replacement]:
    """What refuses in a run of this world."""
    found: list[Replacement] = [
        _refusing(world, time, "sleep", "time.sleep", refusals.BLOCKING),
        _refusing(world, threading.Thread, "start", "threading.Thread.start", refusals.THREADS),
        _refusing(
            world, threading.Condition, "wait", "threading.Condition.wait", refusals.BLOCKING
        ),
        _refusing(world, subprocess.Popen, "__init__", "subprocess.Popen", refusals.PROCESSES),
        _refusing(world, os, "system", "os.system", refusals.PROCESSES),
        _refusing(world, socket.socket, "__init__", "socket.socket", refusals.SOCKETS),
        _refusing(
            world,
            multiprocessing.process.BaseProcess,
            "start",
            "multiprocessing.Process.start",
            refusals.PROCESSES,
        ),
    ]
    for name in SELECTORS:
        if hasattr(selectors, name):
            call = f"selectors.{name}"
            selector = getattr(selectors, name)
            found.append(_refusing(world, selector, "__init__", call, refusals.SOCKETS))
    for where in (asyncio, asyncio.events):
        call = "asyncio.new_event_loop"
        found.append(_refusing(world, where, "new_event_loop", call, refusals.LOOPS))
    for name in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
        pool = getattr(concurrent.futures, name)
        instead = refusals.PROCESSES if name.startswith("Process") else refusals.THREADS
        found.append(_refusing(world, pool, "submit", f"{name}.submit", instead))
    for (where, instead), calls in FUNCTIONS.items():
        found += [
            _refusing(world, where, name, f"{where.__name__}.{name}", instead)
            for name in calls
            if hasattr(where, name)
        ]
    found.append((socket, "gethostname", _host_name(socket.gethostname)))
    for module, names in C_CLIENT_MODULES.items():
        found += _c_clients(world, module, names)
    return found


def _refusing(world: refusals.World, where: Any, name: str, call: str, instead: str) -> Replacement:
    real = getattr(where, name)

    def refuses(*args: Any, **options: Any) -> Any:
        if in_application():
            refusals.refuse(world, call, instead)
        return real(*args, **options)

    return where, name, refuses


def _host_name(real: Callable[[], str]) -> Callable[[], str]:
    def host_name() -> str:
        run = current.run
        return real() if run is None else run.host_name()

    return host_name


def _c_clients(world: refusals.World, module: str, names: tuple[str, ...]) -> list[Replacement]:
    """Those that have been imported; classes that an application derives from them too."""
    found: list[Replacement] = []
    loaded = sys.modules.get(module)
    for name in names if loaded is not None else ():
        known = getattr(loaded, name, None)
        if not isinstance(known, type):
            continue
        call = f"confluent_kafka.{name}"
        found.append(_refusing(world, loaded, name, call, refusals.C_CLIENTS))
        subclasses: list[type] = known.__subclasses__()
        for derived in subclasses:
            if not derived.__module__.startswith("confluent_kafka"):
                call = f"{derived.__qualname__} (a confluent_kafka.{name})"
                found.append(_refusing(world, derived, "__init__", call, refusals.C_CLIENTS))
    return found


class NoImportOfCClients:
    """Found before all other finders: an import in the middle of a run is refused by its name."""

    def __init__(self, world: refusals.World) -> None:
        self._world = world

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in C_CLIENT_MODULES and in_application():
            refusals.refuse(self._world, f"import {name}", refusals.C_CLIENTS)
