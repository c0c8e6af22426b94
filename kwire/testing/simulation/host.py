"""A machine of the simulated world: a name, a clock that may be wrong, a loop, a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.clock import SeededRandom
from kwire.testing.simulation.disk import SimulatedDisk
from kwire.testing.simulation.loop import SimulatedLoop
from kwire.testing.simulation.scheduler import START_WALL_MS

if TYPE_CHECKING:
    from kwire.testing.simulation.scheduler import Simulation


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
    `disk_delay_s` slows executor jobs down.
    """

    def __init__(
        self, simulation: Simulation, name: str, index: int, clock_skew_ms: int = 0
    ) -> None:
        self.simulation = simulation
        self.name = name
        self.address = f"10.0.0.{index + 1}"
        self.clock_skew_ms = clock_skew_ms
        self.disk_delay_s = 0.0
        self.clock = SimulatedClock(self)
        self.random = SeededRandom(simulation.random.below(1 << 62))
        self.disk = SimulatedDisk(SeededRandom(simulation.random.below(1 << 62)))
        self.up = True  # its process runs
        self.powered = True
        self.loop = SimulatedLoop(self)  # type: ignore[abstract]

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
        self.loop = SimulatedLoop(self)  # type: ignore[abstract]
        return self.loop
