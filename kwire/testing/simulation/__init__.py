"""A deterministic world for asyncio programs: time, hosts, network and disks from one seed.

For the tests of an application (docs/SIMULATION.md):

    @simulate(seeds=200, minutes=10)
    async def test_orders(cluster): ...

    async with simulated_cluster(seed=7) as cluster: ...

Underneath, `Simulation(seed)` makes the world, `simulation.host(name)` a machine in it whose
`loop` is an asyncio event loop. Programs that do I/O only through their loop (protocols and
transports, `call_at`, `time`, `run_in_executor`) run on it unmodified: a whole kwire node, an
aiokafka client. The same seed gives the same history, event for event, in any process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.testing.simulation.host import SimulatedHost
from kwire.testing.simulation.scheduler import Simulation

if TYPE_CHECKING:
    from kwire.testing.simulation.checks import Check as Check
    from kwire.testing.simulation.checks import CheckFailed as CheckFailed
    from kwire.testing.simulation.checks import ExactlyOnce as ExactlyOnce
    from kwire.testing.simulation.checks import KeyOrder as KeyOrder
    from kwire.testing.simulation.checks import NothingDoubled as NothingDoubled
    from kwire.testing.simulation.checks import NothingLost as NothingLost
    from kwire.testing.simulation.checks import OffsetsForward as OffsetsForward
    from kwire.testing.simulation.checks import watch as watch
    from kwire.testing.simulation.cluster import SimulatedCluster as SimulatedCluster
    from kwire.testing.simulation.decorator import simulate as simulate
    from kwire.testing.simulation.handover import simulated_cluster as simulated_cluster
    from kwire.testing.simulation.history import History as History
    from kwire.testing.simulation.processes import Process as Process
    from kwire.testing.simulation.refusals import CannotSimulate as CannotSimulate
    from kwire.testing.simulation.run import RunFailed as RunFailed
    from kwire.testing.simulation.search import SimulationFailed as SimulationFailed

# Imported at their first use: they bring a broker, or aiokafka's seams.
_HOMES = {
    "CannotSimulate": "refusals",
    "Check": "checks",
    "CheckFailed": "checks",
    "ExactlyOnce": "checks",
    "History": "history",
    "KeyOrder": "checks",
    "NothingDoubled": "checks",
    "NothingLost": "checks",
    "OffsetsForward": "checks",
    "Process": "processes",
    "RunFailed": "run",
    "SimulatedCluster": "cluster",
    "SimulationFailed": "search",
    "simulate": "decorator",
    "simulated_cluster": "handover",
    "watch": "checks",
}

__all__ = ["SimulatedHost", "Simulation", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
