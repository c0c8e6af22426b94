"""The order of everything: one queue of timers, a ready queue per host, one source of chance.

Time stands still while callbacks run and jumps to the next timer when none is ready. Within one
host callbacks keep asyncio's order; which host runs next, and which of several timers with the
same deadline fires first, is drawn from the seed. Nothing here depends on hashes, addresses or
the machine's clock, so a seed is a history.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from kwire.clock import SeededRandom
from kwire.testing.simulation.host import SimulatedHost
from kwire.testing.simulation.loop import SimulatedHandle, SimulatedLoop
from kwire.testing.simulation.network import SimulatedNetwork

T = TypeVar("T")

MILLION = 1_000_000
MILLION_BITS = MILLION.bit_length()
RANKS = 1 << 30  # of timers that are due together
RANK_BITS = RANKS.bit_length()
LATE_S = 0.02  # that a timer waits at most for queues that never run empty


class SimulationError(AssertionError):
    """The program under simulation failed: an unhandled error in a callback, or no progress."""


class Simulation:
    """The world: time, chance, hosts, the network between them and a transcript of what happened.

    `now` is simulated seconds since the start. `transcript` collects lines of `record`;
    `fingerprint()` condenses it to compare two runs.
    """

    def __init__(self, seed: int, *, keep_transcript: bool = True) -> None:
        self.seed = seed
        self.now = 0.0
        self.random = SeededRandom(seed)
        self._bits = self.random.bits
        self.hosts: dict[str, SimulatedHost] = {}
        self.transcript: list[str] = []
        self.failures: list[str] = []
        self.failed_with: BaseException | None = None
        self.told: Callable[[str, str], None] | None = None  # hears each line of `record`
        self.after_event: Callable[[], None] | None = None
        self._keep_transcript = keep_transcript
        self._digest = hashlib.blake2b(digest_size=16)
        self._timers: list[tuple[float, int, int, SimulatedHandle]] = []
        self._sequence = 0
        self._ready: dict[SimulatedLoop, deque[SimulatedHandle]] = {}
        self.events = 0
        self.network = SimulatedNetwork(self)

    # --- the world's furniture ---

    def host(
        self, name: str, *, clock_skew_ms: int = 0, is_application: bool = False
    ) -> SimulatedHost:
        """The host called `name`, made on first use."""
        host = self.hosts.get(name)
        if host is None:
            index = len(self.hosts)
            host = SimulatedHost(self, name, index, clock_skew_ms, is_application)
            self.hosts[name] = host
        return host

    def advance(self, seconds: float) -> None:
        """Let time pass while callbacks run."""
        self.now += seconds

    def record(self, who: str, what: str) -> None:
        """Add a line to the transcript."""
        line = f"{self.now:.6f} {who} {what}"
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        if self._keep_transcript:
            self.transcript.append(line)
        if self.told is not None:
            self.told(who, what)

    def forget(self) -> None:
        """Let go of everything that was to happen, when nothing happens any more."""
        self._timers.clear()
        self._ready.clear()
        self.network.forget_all()

    def fail(self, message: str, error: BaseException | None) -> None:
        """End the run as failed, with what failed in it."""
        self.failures.append(message)
        if self.failed_with is None:
            self.failed_with = error

    def fingerprint(self) -> str:
        """A digest of the transcript so far."""
        return self._digest.hexdigest()

    def uniform(self, low: float, high: float) -> float:
        """A random number in [low, high), in steps of a millionth of the range."""
        bits = self._bits
        drawn = bits(MILLION_BITS)
        while drawn >= MILLION:  # as `SeededRandom.below`
            drawn = bits(MILLION_BITS)
        return low + (high - low) * (drawn / MILLION)

    def chance(self, per_million: int) -> bool:
        """True `per_million` times in a million; draws nothing when it is 0."""
        if per_million <= 0:
            return False
        bits = self._bits
        drawn = bits(MILLION_BITS)
        while drawn >= MILLION:
            drawn = bits(MILLION_BITS)
        return drawn < per_million

    # --- what loops call ---

    def make_ready(self, handle: SimulatedHandle) -> None:
        """Queue a callback that is due now, behind those of its loop; a held loop keeps it."""
        loop = handle.loop
        if loop.held is not None:
            loop.held.append(handle)
            return
        queue = self._ready.get(loop)
        if queue is None:
            queue = self._ready[loop] = deque()
        queue.append(handle)

    def add_timer(self, when: float, handle: SimulatedHandle) -> None:
        """Queue a timer for `when` (seconds); chance decides between those of one moment."""
        self._sequence += 1
        bits = self._bits
        rank = bits(RANK_BITS)
        while rank >= RANKS:  # as `SeededRandom.below`
            rank = bits(RANK_BITS)
        heappush(self._timers, (when, rank, self._sequence, handle))

    def hold(self, loop: SimulatedLoop) -> None:
        """Run nothing of `loop` until `release`: its process is stopped, the world goes on."""
        if loop.held is None:
            loop.held = self._ready.pop(loop, deque())

    def release(self, loop: SimulatedLoop) -> None:
        """Let a loop that was held catch up: what came meanwhile, timers too, in that order."""
        held, loop.held = loop.held, None
        for handle in held or ():
            self.make_ready(handle)

    def drop(self, loop: SimulatedLoop) -> None:
        """Forget everything that `loop` had to do (its host crashed)."""
        self._ready.pop(loop, None)
        loop.held = None
        kept = [entry for entry in self._timers if entry[3].loop is not loop]
        if len(kept) != len(self._timers):
            heapify(kept)
            self._timers = kept

    # --- running ---

    def step(self) -> bool:
        """Run one callback; returns False when nothing is left to do, ever."""
        timers = self._timers
        if not self._ready:
            handle = self._next_timer()
        elif timers and timers[0][0] < self.now - LATE_S:
            handle = self._late_timer() or self._next_ready()
        else:
            handle = self._next_ready()
        if handle is None:
            return False
        if not handle.is_cancelled:
            self.events += 1
            handle.run()
            if self.after_event is not None:
                self.after_event()
        return True

    def run_until(self, condition: Callable[[], bool], *, limit_s: float = 3600.0) -> None:
        """Run until `condition()` holds.

        Raises SimulationError when `limit_s` simulated seconds pass before, when nothing is left
        to do, or when a callback failed without anyone handling it.
        """
        end = self.now + limit_s
        while not condition():
            if not self.step():
                raise SimulationError("nothing left to do, and the condition does not hold")
            if self.failures:
                raise SimulationError(self.failures[0])
            if self.now > end:
                raise SimulationError(f"the condition did not hold within {limit_s} s")

    def run_for(self, seconds: float) -> None:
        """Run `seconds` of simulated time."""
        end = self.now + seconds
        while self._ready or (self._timers and self._timers[0][0] <= end):
            self.step()
            if self.failures:
                raise SimulationError(self.failures[0])
        self.now = max(self.now, end)

    def run(self, host: SimulatedHost, main: Coroutine[Any, Any, T], limit_s: float = 3600.0) -> T:
        """Run a coroutine on a host to its end and return its result."""
        task = host.loop.create_task(main)
        self.run_until(task.done, limit_s=limit_s)
        return task.result()

    def _next_ready(self) -> SimulatedHandle:
        """The first in line of a host that has something to do; cancelled ones too."""
        ready = self._ready
        if len(ready) == 1:
            loop = next(iter(ready))
        else:
            loop = list(ready)[self.random.below(len(ready))]
        queue = ready[loop]
        handle = queue.popleft()
        if not queue:
            del ready[loop]
        return handle

    def _late_timer(self) -> SimulatedHandle | None:
        """The next timer of those that are late: a program that spins (`await asyncio.sleep(0)`)
        until something comes never lets the queues run empty."""
        timers, latest = self._timers, self.now - LATE_S
        while timers and timers[0][0] < latest:
            handle = heappop(timers)[3]
            if handle.is_cancelled:
                continue
            held = handle.loop.held
            if held is None:
                return handle
            held.append(handle)
        return None

    def _next_timer(self) -> SimulatedHandle | None:
        """The next timer of a process that runs; it becomes that late."""
        timers = self._timers
        while timers:
            when, _, _, handle = heappop(timers)
            if handle.is_cancelled:
                continue
            if when > self.now:
                self.now = when
            held = handle.loop.held
            if held is None:
                return handle
            held.append(handle)
        return None
