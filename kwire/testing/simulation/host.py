"""A machine of the simulated world: a name, a clock that may be wrong, a loop, a disk."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from kwire.clock import SeededRandom
from kwire.testing.simulation import loop as loops
from kwire.testing.simulation import network as networks
from kwire.testing.simulation.application_loop import ApplicationLoop
from kwire.testing.simulation.disk import SimulatedDisk
from kwire.testing.simulation.loop import ProtocolFactory, SimulatedLoop
from kwire.testing.simulation.network import SimulatedNetwork, SimulatedServer

START_WALL_MS = 1_700_000_000_000


class World(loops.World, networks.World, Protocol):
    """The world that a host is part of (`scheduler.py`)."""

    @property
    def network(self) -> SimulatedNetwork: ...

    def hold(self, loop: SimulatedLoop) -> None: ...

    def release(self, loop: SimulatedLoop) -> None: ...

    def advance(self, seconds: float) -> None: ...


class SimulatedClock:
    """A host's wall clock: simulated time plus the host's skew."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

    def wall_ms(self) -> int:
        now_ms = int(self._host.simulation.now * 1000)
        return START_WALL_MS + now_ms + self._host.clock_skew_ms


class SimulatedHost:
    """A host. `crash` ends its current life; `restart` begins another with the same disk.

    `disk` implements the log's file layer and keeps its content over crashes as a disk does;
    `disk_delay_s` slows executor jobs down. One that `is_application` has an `ApplicationLoop`.
    """

    def __init__(
        self,
        simulation: World,
        name: str,
        index: int,
        clock_skew_ms: int = 0,
        is_application: bool = False,
    ) -> None:
        self.simulation = simulation
        self.name = name
        self.index = index
        self.is_application = is_application
        self.address = f"10.0.0.{index + 1}"
        self.clock_skew_ms = clock_skew_ms
        self.disk_delay_s = 0.0
        self.clock = SimulatedClock(self)
        self.random = SeededRandom(simulation.random.below(1 << 62))
        self.disk = SimulatedDisk(SeededRandom(simulation.random.below(1 << 62)))
        self.up = True  # its process runs
        self.powered = True
        self.loop = self._new_loop()

    def _new_loop(self) -> SimulatedLoop:
        if self.is_application:
            return ApplicationLoop(self, self.simulation.advance)  # type: ignore[abstract]
        return SimulatedLoop(self)  # type: ignore[abstract]

    async def connect(
        self, address: str, port: int, protocol_factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, Any]:
        """Connect from here."""
        return await self.simulation.network.connect(self, address, port, protocol_factory)

    def listen(self, port: int, protocol_factory: ProtocolFactory) -> SimulatedServer:
        """Listen on a port, 0 for a free one."""
        return self.simulation.network.listen(self, port, protocol_factory)

    def freeze(self) -> None:
        """Stop the process (SIGSTOP, a long pause); its connections stay, its timers fire late."""
        self.simulation.record(self.name, "frozen")
        self.simulation.hold(self.loop)

    def thaw(self) -> None:
        """Let it go on."""
        self.simulation.record(self.name, "thawed")
        self.simulation.release(self.loop)

    def crash(self, *, power_loss: bool = True) -> None:
        """Stop everything at once.

        With `power_loss` the disk loses what was not synced and peers hear nothing; without it
        (the process is killed) the kernel keeps written data, resets the connections and refuses
        new ones.
        """
        self.simulation.record(self.name, "crash" if power_loss else "killed")
        self.up = False
        self.powered = not power_loss
        self.loop.kill()
        self.simulation.network.host_crashed(self, silently=power_loss)
        if power_loss:
            self.disk.crash()
        else:
            self.disk.process_killed()

    def restart(self) -> SimulatedLoop:
        """Come back up; returns the new loop."""
        self.simulation.record(self.name, "restart")
        if self.up:
            self.loop.kill()
            self.simulation.network.host_crashed(self, silently=False)
        self.up = self.powered = True
        self.loop = self._new_loop()
        return self.loop
