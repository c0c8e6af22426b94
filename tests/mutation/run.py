"""Draws mutants by a seed and tells which the tests and the simulation find.

    python -m tests.mutation.run [--seed N] [--count N] [--jobs N] [--keep DIR] [--out FILE]

Mutants (`operators.py`) are drawn from every place of `PACKAGES`. Each is tried in a process of its
own (`trial.py`): first the quick tests that run its lines, then, if none fails, the histories
that do. A mutant that ends neither within `LIMIT_FACTOR` times what the code as it is needs is
found by its time-out. A mutant that was not tried, because nothing runs its lines or because it
could not be put in, survives. The end is a table by file and the survivors, one a line. No file of
the working tree is touched.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.mutation.operators import Mutant, mutants_of, places_of
from tests.mutation.trial import (
    ROOT,
    TESTS_S,
    Covered,
    Line,
    Prepared,
    cover,
    limit,
    put_in_first,
    touching,
    within,
)

PACKAGES = ("kwire/kraft/raft", "kwire/replica", "kwire/coordinator/transaction")
COUNT = 300
LIMIT_FACTOR = 4
LIMIT_S = 8.0
WALL_FACTOR = 12
"""A time limit is of the process's own CPU; by the clock it may take so many times as long."""

PR_SET_PDEATHSIG = 1
NUMBER_BYTES = 4
UNIT, SIMULATION, TIMEOUT, SURVIVED = "tests", "simulation", "time-out", "survived"


def source_files() -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]


def drawn(seed: int, count: int) -> tuple[list[Mutant], int]:
    """`count` of all mutants, by the seed, in the order of the files; and how many there are."""
    sources = {path: (ROOT / path).read_text() for path in source_files()}
    every = [(path, place) for path, source in sources.items() for place in places_of(source)]
    order = list(range(len(every)))
    random.Random(seed).shuffle(order)
    chosen = [every[index] for index in order[:count]]
    return [
        mutant
        for path, source in sources.items()
        for mutant in mutants_of(path, source, {at for where, at in chosen if where == path})
    ], len(every)


# -- processes


class Child:
    """A forked process that pickles what `work` returns."""

    def __init__(self, work: Callable[[], Any], wall_s: float) -> None:
        read, write = os.pipe()
        sys.stdout.flush()
        self.end = time.monotonic() + wall_s
        self.pid = os.fork()
        if not self.pid:
            os.close(read)
            os.setpgid(0, 0)
            _end_with_parent()
            _be_silent()
            try:
                data = pickle.dumps(work())
            except BaseException as error:
                data = pickle.dumps(("error", f"{type(error).__name__}: {error}"))
            with os.fdopen(write, "wb") as pipe:
                pipe.write(data)
            os._exit(0)
        os.close(write)
        self._read = read

    def result(self) -> Any:
        """What it returned; None when it ended otherwise, or was not done in time."""
        data = b""
        while True:
            left = self.end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                break
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                break
            data += chunk
        os.close(self._read)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        os.waitpid(self.pid, 0)
        try:
            return pickle.loads(data)
        except (EOFError, pickle.UnpicklingError):
            return None


def _end_with_parent() -> None:
    """Where the system can tell us."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _be_silent() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


# -- one mutant


def attempt(
    mutant: Mutant, covered: Covered, prepared: Prepared | None, outcome: str
) -> tuple[str, str]:
    """(outcome, by what), where `outcome` is by what it is tried, or survived. Without `prepared`
    the mutant is made when its module is imported."""
    runs = covered.tests if outcome == UNIT else covered.histories
    names = touching(runs, mutant)
    if outcome == UNIT:
        names = within(runs, names, TESTS_S)
    while names:
        kind, what = _tried(mutant, prepared, outcome, names, runs)
        if kind == "error" and prepared is not None and what.startswith("ValueError"):
            return attempt(mutant, covered, None, outcome)
        if kind == "error":
            return outcome, f"cannot be loaded: {what}"
        if kind == TIMEOUT:
            return TIMEOUT, outcome
        if kind == "passed":
            break
        name, told = what
        if prepared is None or _passes(prepared, outcome, name, runs):
            return outcome, f"{name}: {told}"
        names = names[names.index(name) + 1 :]  # it fails without the mutant, too
    ran = touching(covered.tests, mutant), touching(covered.histories, mutant)
    return SURVIVED, f"{len(ran[0])} tests and {len(ran[1])} histories run it"


def _tried(
    mutant: Mutant,
    prepared: Prepared | None,
    outcome: str,
    names: list[str],
    runs: dict[str, tuple[float, set[Line]]],
) -> tuple[str, Any]:
    seconds = sum(runs[name][0] for name in names) * LIMIT_FACTOR + LIMIT_S

    def work() -> tuple[str, Any]:
        limit(seconds)
        return _trial(mutant, prepared, outcome, names)

    return Child(work, seconds * WALL_FACTOR).result() or (TIMEOUT, "")


def _passes(
    prepared: Prepared, outcome: str, name: str, runs: dict[str, tuple[float, set[Line]]]
) -> bool:
    """Whether the code as it is passes, on the machine as busy as it is now."""
    run = prepared.run_test if outcome == UNIT else prepared.run_history
    wall_s = (runs[name][0] * LIMIT_FACTOR + LIMIT_S) * WALL_FACTOR
    return Child(lambda: ("ended", run(name)), wall_s).result() == ("ended", None)


def _trial(
    mutant: Mutant, prepared: Prepared | None, outcome: str, names: list[str]
) -> tuple[str, Any]:
    if prepared is None:
        put_in_first(mutant)
        prepared = Prepared()
    else:
        prepared.put_in(mutant)
    run = prepared.run_test if outcome == UNIT else prepared.run_history
    there = prepared.tests if outcome == UNIT else prepared.histories
    for name in names:
        if name not in there:
            continue  # known to a coverage that was kept
        failed = run(name)
        if failed is not None:
            return "failed", (name, failed.splitlines()[0])
    return "passed", ""


def _work_off(queue: int, mutants: list[Mutant], covered: Covered, outcome: str, file: str) -> None:
    """Take mutants' numbers from the queue (a pipe); every outcome is a line of `file` at once."""
    prepared = Prepared()
    while number := os.read(queue, NUMBER_BYTES):
        mutant = mutants[int.from_bytes(number, "big")]
        began = time.monotonic()
        own = prepared if mutant.function is not None else None
        result = [*attempt(mutant, covered, own, outcome), round(time.monotonic() - began, 1)]
        with open(file, "a") as lines:
            lines.write(json.dumps([mutant.name, *result]) + "\n")


# -- all of them


def coverage(kept: Path) -> Any:
    """A `Covered`, or what went wrong; of `kept` where it is there."""
    if kept.exists():
        return pickle.loads(kept.read_bytes())
    covered = Child(lambda: cover(Prepared(), source_files()), 3600).result()
    if isinstance(covered, Covered):
        kept.write_bytes(pickle.dumps(covered))
    return covered


def run(
    mutants: list[Mutant], jobs: int, report: Callable[[str], None], directory: str
) -> dict[str, list[Any]]:
    """name -> [outcome, by what, seconds]. `directory` keeps what is known, so that a run that was
    ended goes on where it was."""
    began = time.monotonic()
    covered = coverage(Path(directory) / "coverage.pickle")
    if not isinstance(covered, Covered):
        raise SystemExit(f"the tests cannot be loaded: {covered}")
    for failure in covered.failing:
        report(f"left out, fails without a mutant: {failure}")
    report(
        f"{len(covered.tests)} tests and {len(covered.histories)} histories, each run once in "
        f"{time.monotonic() - began:.0f} s"
    )
    results: dict[str, list[Any]] = {}
    for outcome in (UNIT, SIMULATION):
        left = [m for m in mutants if results.get(m.name, [SURVIVED])[0] == SURVIVED]
        left.sort(key=lambda mutant: mutant.function is None)  # everything is loaded for those
        file = Path(f"{directory}/{outcome}.jsonl")
        file.touch()
        report(f"{len(left)} are tried by {outcome}")
        _all_by(outcome, left, covered, jobs, file, report)
        results.update(_lines(file))
    return results


def _all_by(
    outcome: str,
    mutants: list[Mutant],
    covered: Covered,
    jobs: int,
    file: Path,
    report: Callable[[str], None],
) -> None:
    """Try them all, but for those that `file` has already."""
    seen = _lines(file)
    read, write = os.pipe()
    for number, mutant in enumerate(mutants):
        if mutant.name not in seen:
            os.write(write, number.to_bytes(NUMBER_BYTES, "big"))
    os.close(write)
    children = [
        Child(lambda: _work_off(read, mutants, covered, outcome, str(file)), 86_400.0)
        for _ in range(jobs)
    ]
    os.close(read)
    waiting = True
    while waiting:
        waiting = any(_is_running(child) for child in children)
        time.sleep(0.5)
        for name, result in _lines(file).items():
            if name not in seen:
                seen[name] = result
                report(f"{len(seen)}/{len(mutants)} {name}: {result[0]} ({result[1]})")


def _lines(file: Path) -> dict[str, list[Any]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {name: result for name, *result in lines}


def _is_running(child: Child) -> bool:
    try:
        return os.waitpid(child.pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def table(mutants: list[Mutant], results: dict[str, list[Any]]) -> list[str]:
    """Lines: a file each, and their sum."""
    columns = (UNIT, SIMULATION, TIMEOUT, SURVIVED)
    rows: dict[str, Counter[str]] = {}
    for mutant in mutants:
        outcome = results.get(mutant.name, [SURVIVED])[0]
        rows.setdefault(mutant.path, Counter())[outcome] += 1
    rows["all"] = sum(rows.values(), Counter())
    lines = [f"{'file':52}{'drawn':>7}" + "".join(f"{name:>12}" for name in columns)]
    for path, row in rows.items():
        counts = "".join(f"{row[name]:>12}" for name in columns)
        lines.append(f"{path:52}{row.total():>7}{counts}")
    return lines


def survivor_lines(mutants: list[Mutant], results: dict[str, list[Any]]) -> list[str]:
    lines = []
    for mutant in mutants:
        outcome, what, *_ = results.get(mutant.name, [SURVIVED, "not run"])
        if outcome == SURVIVED:
            source = (ROOT / mutant.path).read_text().splitlines()[mutant.line - 1].strip()
            lines.append(f"{mutant.name} [{mutant.function or 'module'}; {what}]")
            lines.append(f"    {source}")
            lines.append(f"    - {_short(mutant.before)}")
            lines.append(f"    + {_short(mutant.after)}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:157] + "..."


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutants, and what finds them.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", help="a file for the results as JSON")
    parser.add_argument("--keep", help="a directory; a run that was ended goes on from what it has")
    parser.add_argument("--only", nargs="*", default=[], help="these of the drawn ones, by name")
    arguments = parser.parse_args()
    mutants, total = drawn(arguments.seed, arguments.count)
    if arguments.only:
        mutants = [m for m in mutants if m.name in arguments.only]
    print(
        f"seed {arguments.seed}: {len(mutants)} of {total} mutants of {', '.join(PACKAGES)}",
        flush=True,
    )
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        kept = arguments.keep or directory
        results = run(mutants, arguments.jobs, lambda line: print(line, flush=True), kept)
    print()
    print("\n".join(table(mutants, results)))
    print("\nSurvivors:")
    print("\n".join(survivor_lines(mutants, results)))
    print(f"\nseed {arguments.seed}, {time.monotonic() - began:.0f} s")
    if arguments.out:
        entries = [{**asdict(m), "name": m.name, "result": results.get(m.name)} for m in mutants]
        Path(arguments.out).write_text(json.dumps(entries, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
