"""One mutant's trial: a forked process in which everything is loaded, and one function is another.

`Prepared` loads the tests once (they are collected, not run) and the simulation. A child of that
process takes a mutant in - the code of the live function is replaced, so whoever has imported it
runs the mutant - and runs the tests that run its lines, the quickest first, until one fails;
another child runs the histories. No file is written; a mutant of a module's own level is put in by
an import hook, before anything is loaded.
"""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
import logging
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tests.mutation.operators import Mutant, mutated

ROOT = Path(__file__).resolve().parents[2]
TESTS = (
    "tests/golden/test_raft_scripts.py",
    "tests/golden/test_raft_answers.py",
    "tests/golden/coordinator/test_coordinator_answers.py",
    "tests/unit/kraft/test_raft_parts.py",
    "tests/unit/kraft/test_raft_roles.py",
    "tests/unit/kraft/test_raft_flush.py",
    "tests/unit/kraft/test_raft_edges.py",
    "tests/unit/kraft/test_leader_refused.py",
    "tests/unit/kraft/test_raft_single.py",
    "tests/unit/kraft/test_raft_random.py",
    "tests/unit/kraft/test_driver_single.py",
    "tests/unit/kraft/test_driver_cluster.py",
    "tests/unit/kraft/test_driver_power_loss.py",
    "tests/unit/replica",
    "tests/unit/coordinator/transaction",
    "tests/unit/api/test_local_transactions.py",
    "tests/unit/membership/test_lost_brokers.py",
    "tests/bugs",
)
"""What is quick and runs the code that mutants are drawn from."""

HISTORIES = 1
ROWS = {
    "serves_before_its_epoch_is_committed": "kwire/kraft/raft",
    "votes_twice": "kwire/kraft/raft",
    "truncation_skipped": "kwire/replica",
}
"""The simulation: so many drawn histories, and the aimed ones of these of its mutations, for the
mutants of these packages."""

TESTS_S = 15.0
"""Of the tests that run a mutant's lines, the quickest that need so much CPU together."""

ROW = "seed of "
TRACE_FACTOR = 2.5
"""How much slower a test is while its lines are noted."""

MEMORY_BYTES = 3 << 30
Line = tuple[str, int]


class NotPutInError(Exception):
    """The mutant is not where it would be run; one line."""


@dataclass
class Covered:
    """Which lines of the mutated files each test and history runs, and how long it takes (s)."""

    tests: dict[str, tuple[float, set[Line]]] = field(default_factory=dict)
    histories: dict[str, tuple[float, set[Line]]] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)


def touching(runs: dict[str, tuple[float, set[Line]]], mutant: Mutant) -> list[str]:
    """The names of those that run one of the mutant's lines, the quickest first. What runs any of
    its file's lines runs what is made at import."""

    def runs_it(covered: set[Line]) -> bool:
        if mutant.function is None:
            return any(path == mutant.path for path, _ in covered)
        return any((mutant.path, n) in covered for n in range(mutant.line, mutant.last_line + 1))

    found = [
        (seconds, name)
        for name, (seconds, covered) in runs.items()
        if runs_it(covered) and _is_meant(name, mutant)
    ]
    return [name for _, name in sorted(found)]


def _is_meant(name: str, mutant: Mutant) -> bool:
    package = ROWS.get(name.removeprefix(ROW))
    return package is None or mutant.path.startswith(package)


def within(runs: dict[str, tuple[float, set[Line]]], names: list[str], cpu_s: float) -> list[str]:
    """As many of them as need so much CPU together, at least one."""
    chosen: list[str] = []
    for name in names:
        cpu_s -= runs[name][0]
        if cpu_s < 0 and chosen:
            break
        chosen.append(name)
    return chosen


class Prepared:
    """The collected tests and the histories, ready to be run in a child of this process."""

    def __init__(self, tests: Iterable[str] = TESTS) -> None:
        import pytest
        from _pytest.config import _prepareconfig

        os.chdir(ROOT)
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", *tests]
        self._config = _prepareconfig(arguments)
        from hypothesis import settings  # behind its pytest plugin, which must come first

        settings.register_profile("mutants", deadline=None, database=None, derandomize=True)
        settings.load_profile("mutants")
        self._reports = _Reports()
        self._config.pluginmanager.register(self._reports)
        self._config._do_configure()
        self._session = pytest.Session.from_config(self._config)
        self._config.hook.pytest_sessionstart(session=self._session)
        self._items = {item.nodeid: item for item in self._session.perform_collect()}
        self.histories = _histories()
        self._functions = _functions()
        gc.collect()
        gc.freeze()  # a child that looks for garbage would copy all of it

    def put_in(self, mutant: Mutant) -> None:
        """Replace the code of the live function; NotPutInError where it cannot be."""
        code = _code_of(mutated(mutant, (ROOT / mutant.path).read_text()), mutant)
        found = self._functions.get((code.co_filename, mutant.function, mutant.function_line))
        if not found:
            raise NotPutInError(f"{mutant.function} is not loaded")
        for function in found:
            function.__code__ = code

    @property
    def tests(self) -> dict[str, Any]:
        """The collected tests by name."""
        return self._items

    def run_test(self, name: str) -> str | None:
        """What failed of one test, or None."""
        self._reports.failed = None
        item = self._items[name]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return self._reports.failed

    def run_history(self, name: str) -> str | None:
        logging.disable(logging.CRITICAL)
        try:
            return self.histories[name]()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            logging.disable(logging.NOTSET)


class _Reports:
    def __init__(self) -> None:
        self.failed: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid} ({report.when})"


def _histories() -> dict[str, Callable[[], str | None]]:
    """Drawn histories, those that are brought about step by step, and one of transactions."""
    from tests.sim import mutations
    from tests.sim.history import History
    from tests.sim.transactions import Ledger

    def drawn(seed: int, plan: Any = None) -> str | None:
        return History(seed, plan).run().violation

    found: dict[str, Callable[[], str | None]] = {}
    for seed in range(1, 1 + HISTORIES):
        found[f"seed {seed}"] = partial(drawn, seed)
    for name in ROWS:
        found[ROW + name] = partial(drawn, mutations.SEEDS[name], mutations.AIMED[name])
    found["ledger 1"] = lambda: Ledger(1).run()  # type: ignore[func-returns-value]
    return found


# -- coverage


def cover(prepared: Prepared, paths: Iterable[str]) -> Covered:
    """Run everything once, as the code is."""
    files = {str(ROOT / path): path for path in paths}
    seen: dict[CodeType, set[int]] = {}
    size: dict[CodeType, int] = {}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        seen[frame.f_code].add(frame.f_lineno)
        return local

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in files:
            return None
        if code not in size:
            size[code] = len({line for *_, line in code.co_lines() if line is not None})
        lines = seen.setdefault(code, set())
        lines.add(frame.f_lineno)
        return local if len(lines) < size[code] else None

    def traced(run: Callable[[str], str | None], name: str) -> tuple[float, set[Line]]:
        seen.clear()
        threading.settrace(tracer)
        sys.settrace(tracer)
        began = time.process_time()
        try:
            failed = run(name)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        seconds = time.process_time() - began
        if failed is not None:
            covered.failing.append(f"{name}: {failed}")
            return seconds, set()
        found = {(files[code.co_filename], n) for code, lines in seen.items() for n in lines}
        return seconds / TRACE_FACTOR, found

    covered = Covered()
    for name in prepared.tests:
        covered.tests[name] = traced(prepared.run_test, name)
    for name in prepared.histories:
        covered.histories[name] = traced(prepared.run_history, name)
        gc.collect()
    return covered


# -- taking a mutant in


def _functions() -> dict[tuple[str, str | None, int], list[FunctionType]]:
    """The live functions of this repository by file, name and first line."""
    found: dict[tuple[str, str | None, int], list[FunctionType]] = {}
    for known in gc.get_objects():
        if isinstance(known, FunctionType) and known.__code__.co_filename.startswith(str(ROOT)):
            code = known.__code__
            key = code.co_filename, code.co_qualname, code.co_firstlineno
            found.setdefault(key, []).append(known)
    return found


def _code_of(tree: ast.Module, mutant: Mutant) -> CodeType:
    module = compile(tree, str(ROOT / mutant.path), "exec", dont_inherit=True)
    waiting = [module]
    while waiting:
        code = waiting.pop()
        if (code.co_qualname, code.co_firstlineno) == (mutant.function, mutant.function_line):
            return code
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    raise NotPutInError(f"{mutant.function} is not in {mutant.path}")


def put_in_first(mutant: Mutant) -> None:
    """Let the module be the mutant when it is imported; NotPutInError where it is already."""
    finder = _Finder(mutant)
    if finder.module in sys.modules:
        raise NotPutInError(f"{finder.module} is loaded already")
    sys.meta_path.insert(0, finder)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        parts = list(Path(mutant.path).with_suffix("").parts)
        self.module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        spec.loader = _Loader(self._mutant, name, str(ROOT / self._mutant.path))
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant, name: str, path: str) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        tree = mutated(self._mutant, Path(self.path).read_text())
        return compile(tree, self.path, "exec", dont_inherit=True)


def limit(cpu_s: float) -> None:
    """This process ends when it has computed for so long, whoever else uses the machine."""
    used = time.process_time()
    seconds = int(used + cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
