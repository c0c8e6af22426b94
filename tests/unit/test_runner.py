"""The runner's judgement: what fails, what may fail, what no longer may."""

from __future__ import annotations

import pathlib
import sys

import pytest

from tests.runner.model import Paths, judge, read_allowed, run_program


def test_outcomes_are_counted_against_the_list() -> None:
    outcomes = {"a": "pass", "b": "fail", "c": "skip", "d": "fail", "e": "pass"}
    result = judge("p", outcomes, {"d": "not built", "e": "not built", "other": "not built"})
    assert (result.passed, result.failed, result.skipped) == (1, 2, 2)
    assert [note for note in result.notes if not note.startswith("skipped")] == [
        "p b: failed",
        "p e: passes, take it off allowed.tsv",
    ]


def test_entry_may_name_its_program() -> None:
    assert judge("p", {"a": "fail"}, {"p/a": "why"}).failed == 0
    assert judge("q", {"a": "fail"}, {"p/a": "why"}).failed == 1


def test_entry_without_a_reason_ends_the_run(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "allowed.tsv"
    path.write_text("# comment\nname\twhy\n")
    assert read_allowed(path) == {"name": "why"}
    path.write_text("name\t\n")
    with pytest.raises(SystemExit, match="no reason"):
        read_allowed(path)


def test_program_over_its_limit_is_ended(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    endless = "import os\nprint('begun', flush=True)\nos.read(os.pipe()[0], 1)"
    paths = Paths(tmp_path, tmp_path, sys.executable)
    outcome = run_program(
        [sys.executable, "-c", endless], log=log, environment=paths.environment(), limit_s=2
    )
    assert outcome.status is None
    assert outcome.output == "begun\n"
