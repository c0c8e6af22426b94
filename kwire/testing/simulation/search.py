"""A test over its seeds: the first that fails, made smaller, and told."""

from __future__ import annotations

import json
import pickle
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from kwire.testing.simulation.options import Options
from kwire.testing.simulation.outcomes import Outcome, outcome_of, with_less
from kwire.testing.simulation.simulated_test import PREFIX, SimulatedTest, shown_numbers
from kwire.testing.simulation.workers import Worker, WorkerFailed

SHRINK_S_MAX = 60.0
HISTORY_LINES = 60


class SimulationFailed(AssertionError):
    """A seed failed: what, when, and how to replay it."""


class Search:
    """Runs a test over its seeds. `run` raises SimulationFailed for one that fails."""

    def __init__(self, test: SimulatedTest, arguments: Mapping[str, object]) -> None:
        self._test = test
        self._arguments = dict(arguments)

    def run(self) -> list[Outcome]:
        """Every seed's outcome, if all are well."""
        __tracebackhide__ = True
        if not self._can_be_sent():
            return self._here()
        first = self._test.options.seed
        waiting = list(range(first, first + self._test.seeds))[::-1]
        workers = [
            Worker(self._test, self._arguments)
            for _ in range(min(self._test.processes, len(waiting)))
        ]
        try:
            outcomes = self._over_seeds(workers, waiting)
            failed = min((one for one in outcomes if one.failure), key=_seed_of, default=None)
            if failed is not None:
                is_replayed = self._test.options.faults is not None  # it was made smaller before
                runs = 0 if is_replayed else self._test.shrink_runs
                shrinking = Shrinking(self._test.options, workers[0], runs)
                smaller = shrinking.smallest(failed)
                raise SimulationFailed(self._told(failed, smaller))
        except WorkerFailed as error:
            raise SimulationFailed(str(error)) from None
        finally:
            for worker in workers:
                worker.close()
        return outcomes

    def _can_be_sent(self) -> bool:
        """Another process can import the test by its name, and read its arguments."""
        if "<locals>" in self._test.function.__qualname__ or not self._test.file:
            return False
        try:
            pickle.dumps(self._arguments)
        except Exception:
            return False
        return True

    def _here(self) -> list[Outcome]:
        """In this process, whose order of sets is its own."""
        __tracebackhide__ = True
        outcomes = []
        for seed in range(self._test.options.seed, self._test.options.seed + self._test.seeds):
            options = replace(self._test.options, seed=seed)
            outcomes.append(outcome_of(self._test.function, self._arguments, options))
            if outcomes[-1].failure:
                raise SimulationFailed(self._told(outcomes[-1], outcomes[-1]))
        return outcomes

    def _over_seeds(self, workers: list[Worker], waiting: list[int]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        busy = {worker.output: worker for worker in workers}
        for worker in workers:
            worker.ask(replace(self._test.options, seed=waiting.pop()))
        while busy:
            oldest = min(busy.values(), key=lambda worker: worker.left_s)
            for output in select.select(list(busy), [], [], oldest.left_s)[0] or [oldest.output]:
                worker = busy[output]
                outcomes.append(worker.answer())
                if waiting and not outcomes[-1].failure:
                    worker.ask(replace(self._test.options, seed=waiting.pop()))
                else:
                    waiting.clear()
                    del busy[output]
        return outcomes

    def _told(self, failed: Outcome, smaller: Outcome) -> str:
        lines = [f"seed {failed.seed} fails: {failed.summary}"]
        if smaller is not failed:
            lines.append(
                f"made smaller: {len(smaller.faults)} of {len(failed.faults)} faults, "
                f"{len(smaller.operations)} of {len(failed.operations)} operations: "
                f"{smaller.summary}"
            )
        lines += ["", smaller.failure or "", "", "what happened:"]
        history = smaller.history.splitlines()
        if len(history) > HISTORY_LINES:
            lines.append(f"… {len(history) - HISTORY_LINES} lines before; the replay has them all")
        lines += history[-HISTORY_LINES:]
        return "\n".join([*lines, "", "replay it:", *self._commands(failed, smaller)])

    def _commands(self, failed: Outcome, smaller: Outcome) -> list[str]:
        file = Path(self._test.file)
        if file.is_relative_to(Path.cwd()):
            file = file.relative_to(Path.cwd())
        name = f"{file}::{self._test.function.__qualname__}"
        options = f"--seed {failed.seed}"
        variables = f"{PREFIX}SEED={failed.seed}"
        if smaller is not failed or self._test.options.faults is not None:
            numbers = shown_numbers(smaller.faults)
            options += f" --faults {numbers}"
            variables += f" {PREFIX}FAULTS={numbers}"
            if failed.operations:
                numbers = shown_numbers(smaller.operations)
                options += f" --operations {numbers}"
                variables += f" {PREFIX}OPERATIONS={numbers}"
        commands = [f"  {variables} python -m pytest {name}"]
        try:
            if self._arguments:
                options += f" --arguments '{json.dumps(self._arguments)}'"
        except (TypeError, ValueError):
            return commands
        return [f"  python -m kwire.testing.simulation replay {name} {options}", *commands]


class Shrinking:
    """Makes a failing run smaller: faults first, then operations, as long as it fails with the same
    error. A third of the runs, and of the time, is kept for operations."""

    def __init__(self, options: Options, worker: Worker, runs: int) -> None:
        self._options = options
        self._worker = worker
        self._runs_left = runs
        self._until = time.monotonic() + SHRINK_S_MAX

    def smallest(self, failed: Outcome) -> Outcome:
        """The smallest that was found in the time there is."""
        in_the_end, self._until = self._until, self._until - SHRINK_S_MAX / 3
        kept = self._runs_left // 3
        self._runs_left -= kept
        best = self._without(failed, lambda one: one.faults, self._with_faults)
        self._until = in_the_end
        self._runs_left += kept
        return self._without(best, lambda one: one.operations, self._with_operations)

    def _with_faults(self, best: Outcome, numbers: tuple[int, ...]) -> Options:
        return with_less(self._options, numbers, best.operations)

    def _with_operations(self, best: Outcome, numbers: tuple[int, ...]) -> Options:
        return with_less(self._options, best.faults, numbers)

    def _without(
        self,
        best: Outcome,
        numbers_of: Callable[[Outcome], tuple[int, ...]],
        options_of: Callable[[Outcome, tuple[int, ...]], Options],
    ) -> Outcome:
        """Leave out halves, then quarters, and so on, of what is left."""
        size = len(numbers_of(best))
        while size:
            size = (size + 1) // 2 if size > 1 else 0
            at = 0
            while size and at < len(numbers_of(best)):
                numbers = numbers_of(best)
                fewer = numbers[:at] + numbers[at + size :]
                tried = self._tried(replace(options_of(best, fewer), seed=best.seed))
                if tried is None:
                    return best
                if _is_same(tried, best) and set(numbers_of(tried)) <= set(numbers):
                    best = tried
                else:
                    at += size
            if size == 1:
                break
        return best

    def _tried(self, options: Options) -> Outcome | None:
        if self._runs_left == 0 or time.monotonic() > self._until:
            return None
        self._runs_left -= 1
        self._worker.ask(options)
        return self._worker.answer()


def _is_same(tried: Outcome, best: Outcome) -> bool:
    """Whether it fails as well, and not of something else: a test may end in another error where
    nothing has been done."""
    return tried.failure is not None and tried.kind == best.kind


def _seed_of(outcome: Outcome) -> int:
    return outcome.seed
