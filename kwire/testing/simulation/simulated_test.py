"""A decorated test as data, and the variables that change how it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace

from kwire.testing.simulation.options import SEED_MAX, Options

SEEDS_MAX = 1_000_000
PROCESSES_MAX = 256
SHRINK_RUNS, SHRINK_RUNS_MAX = 80, 10_000
PREFIX = "KWIRE_SIMULATION_"
VARIABLES = ("SEED", "SEEDS", "FAULTS", "OPERATIONS", "PROCESSES")

Test = Callable[..., Coroutine[object, object, object]]


@dataclass(frozen=True)
class SimulatedTest:
    """A decorated test and how it runs. `options.seed` is the first of `seeds`; `shrink_runs` is
    how many runs one that fails gets to be made smaller."""

    function: Test
    options: Options
    seeds: int
    processes: int
    shrink_runs: int = SHRINK_RUNS

    @property
    def file(self) -> str:
        return inspect.getsourcefile(self.function) or ""

    def told_by_environment(self, environment: Mapping[str, str]) -> SimulatedTest:
        """With what the variables say; ValueError names one that cannot be."""
        for name in environment:
            if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in VARIABLES:
                known = ", ".join(PREFIX + each for each in VARIABLES)
                raise ValueError(f"{name} is no variable; accepted are {known}")
        options, seeds, processes = self.options, self.seeds, self.processes
        if text := environment.get(f"{PREFIX}SEEDS"):
            seeds = _whole(f"{PREFIX}SEEDS", text, 1, SEEDS_MAX)
        if text := environment.get(f"{PREFIX}PROCESSES"):
            processes = _whole(f"{PREFIX}PROCESSES", text, 1, PROCESSES_MAX)
        if text := environment.get(f"{PREFIX}SEED"):
            seed = _whole(f"{PREFIX}SEED", text, 0, SEED_MAX)
            options, seeds = replace(options, seed=seed), 1
            for name in ("FAULTS", "OPERATIONS"):
                if (text := environment.get(PREFIX + name)) is not None:
                    numbers = frozenset(parsed_numbers(PREFIX + name, text))
                    if name == "FAULTS":
                        options = replace(options, faults=numbers)
                    else:
                        options = replace(options, operations=numbers)
        return replace(self, options=options, seeds=seeds, processes=processes)


def _whole(name: str, text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f"{name}={text!r}: accepted are whole numbers from {low} to {high}")
    return int(text)


def parsed_numbers(name: str, text: str) -> list[int]:
    """`0-4,9` as numbers, `none` as nothing; ValueError names the option."""
    found: list[int] = []
    for part in text.split(",") if text not in ("", "none") else ():
        low, dash, high = part.partition("-")
        high = high if dash else low
        is_range = low.isdecimal() and high.isdecimal() and len(part) <= 20
        if not is_range or int(low) > int(high):
            raise ValueError(f"{name}={text!r}: accepted are numbers such as 0-4,9, or none")
        if int(high) - int(low) > SEEDS_MAX:
            raise ValueError(f"{name}={text!r}: accepted are at most {SEEDS_MAX} numbers")
        found.extend(range(int(low), int(high) + 1))
    return found


def shown_numbers(numbers: Iterable[int]) -> str:
    """As `parsed_numbers` reads them."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or "none"
