"""Time, chance and names of the machine, as an application under simulation sees them.

`StandIns` replaces functions of the standard library: time, datetime, random, uuid, os.urandom,
secrets. A stand-in asks the run of this thread, and the real function where there is none, so
that one may stay for good: a process that only simulates calls `replace_for_good()` before it
imports the application, whose own copies (`from time import time`, defaults) are then
stand-ins as well. Elsewhere they are put back when the run ends, also in modules that had copied
them.
"""

from __future__ import annotations

import datetime
import os
import platform
import random
import sys
import time
import uuid
from _thread import get_ident
from asyncio.events import _get_running_loop
from collections.abc import Callable
from datetime import date as _real_date
from datetime import datetime as _real_datetime
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol

NS = 1_000_000_000
LOOK_S = 1e-6  # that asking for the time takes: who spins until a deadline gets there
NOT_LOOKED_AT = ("_pytest", "pytest", "pluggy", "xdist", "execnet", "kwire", "coverage")
Replacement = tuple[Any, str, Any]  # a module or class, an attribute, the stand-in


class Run(Protocol):
    """What the stand-ins of a thread ask."""

    def monotonic_s(self) -> float: ...

    def wall_ns(self) -> int: ...

    def look(self, seconds: float) -> None: ...

    def random_bytes(self, size_bytes: int) -> bytes: ...

    def process_id(self) -> int: ...

    def host_name(self) -> str: ...


class _Current:
    """The run of each thread that has one."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}

    def set(self, run: Run | None) -> None:
        if run is None:
            self._runs.pop(get_ident(), None)
        else:
            self._runs[get_ident()] = run

    @property
    def run(self) -> Run | None:
        return self._runs.get(get_ident()) if self._runs else None


current = _Current()


def in_application() -> bool:
    """Whether what runs is an application's: brokers have loops of their own kind."""
    loop = _get_running_loop()
    return current.run is not None and hasattr(loop, "refuse")


def _instead(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    def stand_in(*args: Any, **options: Any) -> Any:
        run = current.run
        return real(*args, **options) if run is None else simulated(run, *args, **options)

    stand_in.__name__ = stand_in.__qualname__ = getattr(real, "__name__", "stand_in")
    stand_in.__doc__ = getattr(real, "__doc__", None)
    return stand_in


def _seconds(ask: Callable[[Run], float]) -> Callable[[Run], float]:
    def asked(run: Run) -> float:
        run.look(LOOK_S)
        return ask(run)

    return asked


def _nanoseconds(ask: Callable[[Run], int]) -> Callable[[Run], int]:
    def asked(run: Run) -> int:
        run.look(LOOK_S)
        return ask(run)

    return asked


def _monotonic_ns(run: Run) -> int:
    return int(run.monotonic_s() * NS)


def _of_now(real: Callable[..., Any]) -> Callable[..., Any]:
    """localtime and its like: of now where no time is given."""

    def simulated(run: Run, secs: float | None = None) -> Any:
        return real(run.wall_ns() / NS if secs is None else secs)

    return simulated


_strftime, _localtime = time.strftime, time.localtime


def _formatted(run: Run, format: str, *given: Any) -> str:
    return _strftime(format, *given) if given else _strftime(format, _localtime(run.wall_ns() / NS))


_asctime = time.asctime


def _told(run: Run, *given: Any) -> str:
    return _asctime(*given) if given else _asctime(_localtime(run.wall_ns() / NS))


_WALL_CLOCKS = tuple(
    getattr(time, name)
    for name in ("CLOCK_REALTIME", "CLOCK_REALTIME_COARSE", "CLOCK_TAI")
    if hasattr(time, name)
)


def _clock_ns(run: Run, clk_id: int) -> int:
    """Wall clocks show the host's time, all others the time since the start."""
    run.look(LOOK_S)
    return run.wall_ns() if clk_id in _WALL_CLOCKS else _monotonic_ns(run)


def _clock_s(run: Run, clk_id: int) -> float:
    return _clock_ns(run, clk_id) / NS


_uname = getattr(os, "uname", None)


def _system(run: Run) -> Any:
    real = _uname()  # type: ignore[misc]
    return os.uname_result((real.sysname, run.host_name(), *real[2:]))


def _times(run: Run) -> os.times_result:
    run.look(LOOK_S)
    now_s = run.monotonic_s()
    return os.times_result((now_s, 0.0, 0.0, 0.0, now_s))


_UUID_EPOCH_100NS = 0x01B21DD213814000


def _uuid1(run: Run, node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    run.look(LOOK_S)
    at = run.wall_ns() // 100 + _UUID_EPOCH_100NS
    sequence = int.from_bytes(run.random_bytes(2)) if clock_seq is None else clock_seq
    fields = (
        at & 0xFFFFFFFF,
        at >> 32 & 0xFFFF,
        at >> 48 & 0x0FFF,
        sequence >> 8 & 0x3F,
        sequence & 0xFF,
        run.process_id() if node is None else node,
    )
    return uuid.UUID(fields=fields, version=1)


class _IsReal(type):
    """Instances are those of the real class: what a stand-in makes is real too."""

    real: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__dict__.get("real", ())) or (
            "real" not in cls.__dict__ and super().__instancecheck__(instance)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__dict__.get("real", ())) or (
            "real" not in cls.__dict__ and super().__subclasscheck__(subclass)
        )


class SimulatedDate(_real_date, metaclass=_IsReal):
    """datetime.date with the run's day as today."""

    real = _real_date

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(_real_date)

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return _made(cls, SimulatedDate, *args, **options)

    @classmethod
    def today(cls) -> Any:
        run = current.run
        return _real_date.today() if run is None else _real_date.fromtimestamp(run.wall_ns() / NS)


class SimulatedDatetime(_real_datetime, metaclass=_IsReal):
    """datetime.datetime with the run's time as now."""

    real = _real_datetime

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(_real_datetime)

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return _made(cls, SimulatedDatetime, *args, **options)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        run = current.run
        if run is None:
            return _real_datetime.now(tz)
        run.look(LOOK_S)
        return _real_datetime.fromtimestamp(run.wall_ns() / NS, tz)

    @classmethod
    def utcnow(cls) -> Any:
        return SimulatedDatetime.now(datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return SimulatedDatetime.now()


def _made(cls: Any, stand_in: Any, *args: Any, **options: Any) -> Any:
    """An instance of the real class; of a subclass that an application has, one of that."""
    return stand_in.real.__new__(stand_in.real if cls is stand_in else cls, *args, **options)


for _class in (SimulatedDate, SimulatedDatetime):
    _class.__name__ = _class.__qualname__ = _class.real.__name__
    _class.__module__ = "datetime"


def _replacements() -> list[Replacement]:
    """Every stand-in, and what it stands for. Made once, while the real ones are in place."""
    simulated: list[tuple[Any, str, Callable[..., Any]]] = [
        (time, "time", _seconds(lambda run: run.wall_ns() / NS)),
        (time, "time_ns", _nanoseconds(lambda run: run.wall_ns())),
        (time, "localtime", _of_now(time.localtime)),
        (time, "gmtime", _of_now(time.gmtime)),
        (time, "ctime", _of_now(time.ctime)),
        (time, "asctime", _told),
        (time, "strftime", _formatted),
        (uuid, "uuid1", _uuid1),
        (os, "urandom", lambda run, size: run.random_bytes(size)),
        (os, "getpid", lambda run: run.process_id()),
        (os, "times", _times),
        (platform, "node", lambda run: run.host_name()),
        (uuid, "getnode", lambda run: run.process_id()),
        (random, "_urandom", lambda run, size: run.random_bytes(size)),
    ]
    if hasattr(time, "clock_gettime"):
        simulated.append((time, "clock_gettime", _clock_s))
        simulated.append((time, "clock_gettime_ns", _clock_ns))
    if hasattr(os, "uname"):
        simulated.append((os, "uname", _system))
        simulated.append((os, "getppid", lambda run: 1))
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        simulated.append((time, name, _seconds(lambda run: run.monotonic_s())))
        simulated.append((time, f"{name}_ns", _nanoseconds(_monotonic_ns)))
    if hasattr(os, "getrandom"):
        simulated.append((os, "getrandom", lambda run, size, flags=0: run.random_bytes(size)))
    found = [
        (where, name, _instead(getattr(where, name), instead)) for where, name, instead in simulated
    ]
    found.append((datetime, "date", SimulatedDate))
    found.append((datetime, "datetime", SimulatedDatetime))
    found.append((random.Random, "seed", _seeding(random.Random.seed)))
    found.append((random, "seed", _seeding_global(random.seed)))
    return found


def _seeding(real: Callable[..., None]) -> Callable[..., None]:
    """`Random()` without a seed is seeded by the run."""

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        run = current.run
        if a is None and run is not None:
            a = int.from_bytes(run.random_bytes(16))
        real(self, a, version)

    return seed


def _seeding_global(real: Callable[..., None]) -> Callable[..., None]:
    def seed(a: Any = None, version: int = 2) -> None:
        run = current.run
        if a is None and run is not None:
            a = int.from_bytes(run.random_bytes(16))
        real(a, version)

    return seed


class StandIns:
    """Puts the stand-ins, and `more` of them, in place between `begin` and `end`."""

    _own: list[Replacement] | None = None
    _are_for_good = False

    def __init__(self, run: Run, more: list[Replacement]) -> None:
        self._run = run
        self._more = more
        self._put_back: list[Replacement] = []
        self._random_state: Any = None

    @classmethod
    def own(cls) -> list[Replacement]:
        """Those of this file."""
        if StandIns._own is None:
            StandIns._own = _replacements()
        return StandIns._own

    @classmethod
    def replace_for_good(cls) -> None:
        """Put them in place before an application is imported, in a process that only simulates."""
        for where, name, stand_in in cls.own():
            setattr(where, name, stand_in)
        StandIns._are_for_good = True

    def begin(self) -> None:
        """From here on this thread's time and chance are the run's."""
        current.set(self._run)
        self._random_state = random.getstate()
        random.seed(int.from_bytes(self._run.random_bytes(16)))
        wanted = [*([] if StandIns._are_for_good else self.own()), *self._more]
        copies: dict[Any, Any] = {}
        for where, name, stand_in in wanted:
            real = getattr(where, name)
            self._replace(where, name, stand_in)
            if isinstance(real, BuiltinFunctionType | FunctionType | type):
                copies[real] = stand_in
        for module in list(sys.modules.values()):
            if module is not None and _is_looked_at(getattr(module, "__name__", "")):
                self._replace_copies(module, copies)

    def _replace_copies(self, module: Any, copies: dict[Any, Any]) -> None:
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, BuiltinFunctionType | FunctionType | type):
                try:
                    stand_in = copies.get(value)
                except TypeError:  # a class whose metaclass has no hash
                    continue
                if stand_in is not None:
                    self._replace(module, name, stand_in)

    def _replace(self, where: Any, name: str, stand_in: Any) -> None:
        has_own = name in vars(where)
        self._put_back.append((where, name, vars(where)[name] if has_own else None))
        setattr(where, name, stand_in)

    def end(self) -> None:
        """Everything is as it was."""
        for where, name, real in reversed(self._put_back):
            if real is None:
                delattr(where, name)
            else:
                setattr(where, name, real)
        self._put_back.clear()
        if self._random_state is not None:
            random.setstate(self._random_state)
        current.set(None)


def _is_looked_at(name: str) -> bool:
    top = name.partition(".")[0]
    return top not in NOT_LOOKED_AT and top not in sys.stdlib_module_names
