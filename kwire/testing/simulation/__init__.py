"""A deterministic world for asyncio programs: time, hosts, network and disks from one seed.

`Simulation(seed)` makes the world, `simulation.host(name)` a machine in it whose `loop` is an
asyncio event loop. Programs that do I/O only through their loop (protocols and transports,
`call_at`, `time`, `run_in_executor`) run on it unmodified: a whole kwire node, an aiokafka client.
The same seed gives the same history, event for event, in any process.
"""

from __future__ import annotations

from kwire.testing.simulation.host import SimulatedHost
from kwire.testing.simulation.scheduler import Simulation

__all__ = ["SimulatedHost", "Simulation"]
