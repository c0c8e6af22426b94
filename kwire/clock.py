"""Time and chance as the rest of kwire sees them.

The composition root (`node/node.py`) creates one `Clock` and one `Random` and hands them down;
nothing else reads the wall clock or draws random numbers, so that a whole node can run on
simulated time from one seed (DESIGN.md, decision 3). Deadlines use `loop.time()`, in
milliseconds as `now_ms`; timestamps that reach a record or a file use `wall_ms()`.
"""

from __future__ import annotations

import random
import time
from typing import Protocol

busy_ns = time.thread_time_ns
"""For how long this thread has had the processor, for metrics as well."""


class Clock(Protocol):
    """Where timestamps come from."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class Random(Protocol):
    """Where identifiers and jitter come from."""

    def random_bytes(self, size_bytes: int) -> bytes:
        """`size_bytes` random bytes."""
        ...

    def below(self, limit: int) -> int:
        """A random integer in [0, limit)."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SkewedClock(SystemClock):
    """The machine's wall clock, `skew_ms` ahead: for faults on command."""

    def __init__(self) -> None:
        self.skew_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.skew_ms


ticks_ns = time.perf_counter_ns
"""Nanoseconds of a clock that also runs while the loop is busy: for how long something took."""


class SystemRandom:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def random_bytes(self, size_bytes: int) -> bytes:
        return self._random.randbytes(size_bytes)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class SeededRandom:
    """Reproducible randomness: the same seed gives the same draws (simulation, tests)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.bits = self._random.getrandbits  # that many random bits as a number

    def random_bytes(self, size_bytes: int) -> bytes:
        return self._random.randbytes(size_bytes)

    def below(self, limit: int) -> int:
        # What randrange does and draws, at a third of its cost: simulations draw all the time.
        if limit < 1:
            raise ValueError(f"nothing is below {limit}")
        bits = self.bits
        width = limit.bit_length()
        drawn = bits(width)
        while drawn >= limit:
            drawn = bits(width)
        return drawn
