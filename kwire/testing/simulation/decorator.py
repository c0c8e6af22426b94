"""`@simulate`: a test that runs over seeds, in processes of its own."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping

from kwire.testing.brokers.runner import Setting
from kwire.testing.simulation.options import Options
from kwire.testing.simulation.simulated_test import (
    PROCESSES_MAX,
    SEEDS_MAX,
    SHRINK_RUNS,
    SHRINK_RUNS_MAX,
    SimulatedTest,
    Test,
)

SEEDS = 200
MINUTES = 10.0


def simulate(
    *,
    seeds: int = SEEDS,
    minutes: float = MINUTES,
    brokers: int = 3,
    faults: Iterable[str] | None = None,
    config: Mapping[str, Setting] | None = None,
    first_seed: int = 0,
    processes: int | None = None,
    shrink_runs: int = SHRINK_RUNS,
) -> Callable[[Test], Callable[..., None]]:
    """Run an async test over seeds: `async def test(cluster): ...`.

    Its first parameter is a new `SimulatedCluster` for each of `seeds` seeds; faults are drawn for
    `minutes` of simulated time (`simulated_cluster`). `processes` run side by side, by default
    one a core. When a seed fails, its run is made smaller, faults first, then operations, by at
    most `shrink_runs` runs, and AssertionError has what failed, the history and the command that
    replays it. ValueError names an option that cannot be.
    """
    if callable(seeds):
        raise ValueError(
            "@simulate: it takes options; accepted is @simulate(seeds=200, minutes=10)"
        )
    _checked("seeds", seeds, 1, SEEDS_MAX)
    if processes is not None:
        _checked("processes", processes, 1, PROCESSES_MAX)
    _checked("shrink_runs", shrink_runs, 0, SHRINK_RUNS_MAX)
    options = Options.checked(
        seed=first_seed, minutes=minutes, brokers=brokers, faults=faults, config=config
    )

    def decorate(function: Test) -> Callable[..., None]:
        parameters = _parameters(function)
        count = processes or _cores()
        test = SimulatedTest(function, options, seeds, count, shrink_runs)

        @functools.wraps(function)
        def over_seeds(**arguments: object) -> None:
            from kwire.testing.simulation.search import Search

            __tracebackhide__ = True
            Search(test.told_by_environment(os.environ), arguments).run()

        del over_seeds.__wrapped__
        over_seeds.__signature__ = inspect.Signature(parameters[1:])  # type: ignore[attr-defined]
        over_seeds.simulated = test  # type: ignore[attr-defined]
        return over_seeds

    return decorate


def _parameters(function: Test) -> list[inspect.Parameter]:
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.iscoroutinefunction(function):
        raise ValueError(f"@simulate: {name} is no `async def`; accepted: async def test(cluster)")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name == "self":
        raise ValueError(
            f"@simulate: {name} has no parameter for the cluster; accepted is a function whose "
            "first parameter is the cluster"
        )
    return parameters


def _cores() -> int:
    """Cores to run on; one where pytest-xdist shares them out itself."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked(name: str, number: int, low: int, high: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise ValueError(f"{name}={number!r}: accepted are whole numbers from {low} to {high}")
