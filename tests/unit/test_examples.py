"""Every program in examples/ is run by a test of `make test`, or by the gate's jobs on Spark."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN_BY_MAKE_TEST = ("sim", "system", "unit")


def imported() -> set[str]:
    """What the tests import."""
    names: set[str] = set()
    for folder in RUN_BY_MAKE_TEST:
        for path in (ROOT / "tests" / folder).rglob("test_*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    names.add(node.module or "")
    return names


def named_by_the_gate() -> set[str]:
    """The words of the gate's tests: those of Spark run programs as files, by their names."""
    return {
        node.value
        for path in (ROOT / "compat_tests" / "spark").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_example_is_imported_by_a_test_that_runs_it() -> None:
    programs = {path.stem for path in (ROOT / "examples").rglob("*.py")}
    assert programs
    assert programs <= imported() | named_by_the_gate()
