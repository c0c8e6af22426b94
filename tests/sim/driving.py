"""How a history of a whole cluster goes on until something holds, and how it is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sim.model import Violation

LOOK_S = 0.02
"""From one look at a condition to the next."""


def run_until(
    simulation: Any,
    condition: Callable[[], bool],
    limit_s: float,
    otherwise: Callable[[], str],
    violation: Callable[[], BaseException | None] = lambda: None,
) -> None:
    """Take steps until the condition holds. Raises what `violation` has found, AssertionError for
    a failure inside the simulation, Violation with what `otherwise` says behind the limit."""
    look = simulation.now
    end = look + limit_s
    while True:
        if simulation.now >= look:
            if condition():
                return
            look = simulation.now + LOOK_S
        if not simulation.step():
            raise AssertionError("nothing left to do")
        found = violation()
        if found is not None:
            raise found
        if simulation.failures:
            raise AssertionError(simulation.failures[0])
        if simulation.now > end:
            raise Violation(otherwise())


def end_all(cluster: Any) -> None:
    """Every host ends, and nothing of a connection is told."""
    simulation = cluster.simulation
    for host in simulation.hosts.values():
        if host.up:
            host.loop.kill()
        simulation.network.host_crashed(host, silently=True)
    cluster.nodes.clear()
