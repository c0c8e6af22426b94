"""The runner's judgement: what fails, what may fail, what no longer may."""

from __future__ import annotations

import dataclasses
import pathlib
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator

import pytest

from kwire.testing.cluster import wait_for
from tests.run import verdict_of
from tests.runner import groups, model
from tests.runner.groups import Context, Group, pytest_group
from tests.runner.kills import ALLOWED, CLIENTS, Allowance, excuse, read_allowances
from tests.runner.lanes import run_in_lanes
from tests.runner.model import Paths, Result, judge, read_allowed, run_program
from tests.runner.served import BrokerDidNotStart, ServedBrokers


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


def test_failures_under_kills_are_excused_by_what_they_say() -> None:
    found = Result(3, 2, 0, ["p a: failed", "p b: failed", "FAIL a 0.1s Gone", "FAIL b 0.2s Lost"])
    allowances = [Allowance("p", "*", "Gone", "it does"), Allowance("q", "b", "Lost", "it did")]
    result = excuse("p", found, allowances)
    assert (result.passed, result.failed, result.skipped) == (3, 1, 1)
    assert result.notes == ["skipped: p a: it does", "p b: failed", "FAIL b 0.2s Lost"]


def test_every_allowance_under_kills_has_its_reason() -> None:
    allowances = read_allowances(ALLOWED)
    assert all(a.text and a.reason for a in allowances)
    assert {a.program for a in allowances} <= {"*", *CLIENTS}


def test_program_over_its_limit_is_ended(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    endless = "import os\nprint('begun', flush=True)\nos.read(os.pipe()[0], 1)"
    paths = Paths(tmp_path, tmp_path, sys.executable)
    outcome = run_program(
        [sys.executable, "-c", endless], log=log, environment=paths.environment(), limit_s=2
    )
    assert outcome.status is None
    assert outcome.output == "begun\n"


def test_a_run_that_was_ended_starts_nothing_more(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group takes its killed program for a failure, and would run it once more."""
    monkeypatch.setattr(model, "_ended", threading.Event())
    log = tmp_path / "log"
    endless = [sys.executable, "-c", "import os\nprint(1, flush=True)\nos.read(os.pipe()[0], 1)"]
    seen: list[int | str | None] = []

    def run() -> None:
        try:
            for _ in range(2):
                seen.append(run_program(endless, log=log, environment={}, limit_s=60).status)
        except model.RunEnded:
            seen.append("ended")

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: log.exists() and log.read_text(), "the program runs")
    model.end_all()
    thread.join(30)
    assert seen == [-signal.SIGKILL, "ended"]


def test_no_broker_is_started_behind_the_end_of_a_run(tmp_path: pathlib.Path) -> None:
    brokers = ServedBrokers(sys.executable, tmp_path)
    brokers.close()
    with pytest.raises(BrokerDidNotStart, match="has ended"):
        brokers.bootstrap()


def _group(*outcomes: Result, real: bool = True) -> tuple[Group, list[bool]]:
    runs: list[bool] = []

    def run(context: Context) -> Result:
        runs.append(context.again)
        return outcomes[len(runs) - 1]

    return Group("g", run, 1, real=real), runs


@pytest.fixture
def context(tmp_path: pathlib.Path) -> Iterator[Context]:
    brokers = ServedBrokers(sys.executable, tmp_path)
    yield Context("g", 60, Paths(tmp_path, tmp_path, sys.executable), brokers)
    brokers.close()


def test_second_run_decides_for_real_clients_and_is_told(context: Context) -> None:
    failed = Result(7, 1, 1, ["a: no answer", "skipped: b"])
    group, runs = _group(failed, Result(1, 0, 0))
    result = group.judged(context)
    assert (result.passed, result.failed, result.skipped) == (8, 0, 1)
    assert result.notes == ["again: a: no answer", "skipped: b"]
    assert runs == [False, True]


def test_what_fails_twice_has_failed(context: Context) -> None:
    failed = Result(7, 1, 0, ["a: no answer"])
    group, _ = _group(failed, Result(0, 1, 0, ["a: no answer"]))
    result = group.judged(context)
    assert (result.passed, result.failed) == (7, 1)
    assert result.notes == ["a: no answer", "again: a: no answer"]


def test_no_second_run_where_nothing_is_left_to_chance(context: Context) -> None:
    for outcome, real in ((Result(7, 1), False), (Result(7, 4), True), (Result(7, 0), True)):
        group, runs = _group(outcome, real=real)
        assert group.judged(context) is outcome
        assert runs == [False]


def test_second_run_of_nothing_decides_nothing(context: Context) -> None:
    failed = Result(7, 1, 0, ["a: no answer"])
    group, _ = _group(failed, Result.skip("g: could not be set up"))
    assert group.judged(context) is failed


def test_pytest_group_runs_only_what_failed_again(tmp_path: pathlib.Path, context: Context) -> None:
    module = tmp_path / "test_by_turns.py"
    module.write_text(
        "import pathlib\nHERE = pathlib.Path(__file__).parent\n\n"
        "def test_steady():\n    with (HERE / 'steady').open('a') as file:\n"
        "        file.write('x')\n\n"
        "def test_unsteady():\n    mark = HERE / 'seen'\n    seen = mark.exists()\n"
        "    mark.touch()\n    assert seen == True\n"
    )
    settings = ("-c", str(groups.ROOT / "pyproject.toml"))  # those that every group has
    group = Group("g", pytest_group(str(module), extra=settings), 60, real=True)
    result = group.judged(context)
    assert (result.passed, result.failed) == (2, 0)
    assert (tmp_path / "steady").read_text() == "x"
    assert "assert False == True" in result.notes[0]


def test_a_crash_after_the_last_test_is_told_and_runs_all_again(
    tmp_path: pathlib.Path, context: Context
) -> None:
    module = tmp_path / "test_crashes.py"
    module.write_text(
        "import atexit, os, pathlib\nSEEN = pathlib.Path(__file__).parent / 'seen'\n\n"
        "def test_steady():\n    if not SEEN.exists():\n        SEEN.touch()\n"
        "        atexit.register(os.abort)\n"
    )
    group = Group("g", pytest_group(str(module), extra=("--rootdir", str(tmp_path))), 60)
    result = group.judged(context)
    assert (result.passed, result.failed) == (1, 0)
    assert result.notes[0].startswith("again: g: pytest ended with -6")
    assert "Fatal Python error: Aborted" in result.notes[0]


def test_every_path_of_a_group_has_to_exist(context: Context) -> None:
    result = pytest_group("tests/unit/test_runner.py", "tests/no_such_folder")(context)
    assert (result.passed, result.failed, result.skipped) == (0, 1, 0)
    assert result.notes == ["g: there is no tests/no_such_folder"]


@pytest.mark.parametrize(
    ("script", "counts", "note"),
    [
        ("echo npm: no network; exit 1", (0, 0, 1), "could not be built"),
        ("echo built; echo FAIL: too slow; exit 1", (0, 1, 0), "too slow: failed"),
        ("echo built; exit 0", (0, 1, 0), "ended: 0, and reported no step"),
        ("echo built; echo Segmentation fault; exit 1", (0, 1, 0), "reported no step"),
        ("echo built; exec sleep 60", (0, 1, 0), "ran over its time limit"),
        ("echo built; echo ok produce 3 ms; echo FAIL fetch: no", (1, 1, 0), "fetch: failed"),
        ("echo built; echo ok produce 3 ms", (1, 0, 0), ""),
    ],
)
def test_a_client_that_was_built_has_to_report(
    script: str,
    counts: tuple[int, int, int],
    note: str,
    tmp_path: pathlib.Path,
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(groups, "ROOT", tmp_path)
    monkeypatch.setattr(ServedBrokers, "bootstrap", lambda *_: "127.0.0.1:1")
    run = tmp_path / "compat_tests" / "client" / "run.sh"
    run.parent.mkdir(parents=True)
    run.write_text(f"#!/bin/sh\n{script}\n")
    run.chmod(0o755)
    result = groups.smoke("client")(dataclasses.replace(context, limit_s=2))
    assert (result.passed, result.failed, result.skipped) == counts
    assert any(note in x for x in result.notes) or not note


def test_every_smoke_program_says_when_it_is_built() -> None:
    for run in groups.ROOT.glob("compat_tests/*/*/run.sh"):
        lines = run.read_text().splitlines()
        started = next(at for at, line in enumerate(lines) if line.startswith("exec timeout"))
        assert lines[started - 1] == f"echo {groups.BUILT}", run


def test_the_end_of_the_verdict_names_what_failed() -> None:
    total = Result(3, 1, 1, ["t.a::b: assert 1\n    == 2", "skipped: x: no y", "again: z: slow"])
    lines = verdict_of(total).splitlines()
    assert lines[-2:] == ["3 passed, 1 failed, 1 skipped", "failed: t.a::b: assert 1"]
    assert lines.index("skipped:") < lines.index("failed once, run again:") < lines.index("failed:")
    assert "    == 2" in lines
    assert verdict_of(Result(3)) == "3 passed, 0 failed, 0 skipped"


def test_what_pytest_collects_alone_can_be_collected_together() -> None:
    """Two modules of one name outside of packages are one to pytest: `pytest` alone gave up."""
    root = pathlib.Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    found: dict[str, list[str]] = {}
    for folder in settings["testpaths"]:
        for path in (root / folder).rglob("test_*.py"):
            if not (path.parent / "__init__.py").exists():
                found.setdefault(path.name, []).append(str(path.relative_to(root)))
    assert [paths for paths in found.values() if len(paths) > 1] == []


@dataclasses.dataclass(frozen=True)
class Sized:
    name: str
    cores: int = 1


def test_every_test_of_sparks_jobs_is_run_by_something() -> None:
    """Two of them were in no group."""
    found = {name for names in groups.SPARK_JOBS.values() for name in names}
    stress = (groups.ROOT / "Makefile").read_text()
    for path in sorted((groups.ROOT / "compat_tests" / "spark" / "jobs").glob("test_*.py")):
        assert path.stem.removeprefix("test_") in found or f"/{path.name}" in stress, path.name


def test_groups_run_side_by_side_as_far_as_cores_reach() -> None:
    """`a` and `b` run at once, `both` alone, and nothing overtakes it."""
    begun: list[str] = []
    at_once = threading.Barrier(2, timeout=30)
    running: list[str] = []

    def run(group: Sized) -> str:
        begun.append(group.name)
        running.append(group.name)
        if group.name in ("a", "b", "c", "d"):
            at_once.wait()
        assert len(running) <= (1 if group.name == "both" else 2)
        running.remove(group.name)
        return group.name.upper()

    groups = [Sized("a"), Sized("b"), Sized("both", 2), Sized("c"), Sized("d")]
    assert run_in_lanes(groups, 2, run) == ["A", "B", "BOTH", "C", "D"]
    assert sorted(begun[:2]) == ["a", "b"]
    assert begun[2] == "both"


def test_who_mostly_waits_runs_beside_a_group_that_has_all_cores() -> None:
    at_once = threading.Barrier(2, timeout=30)
    run_in_lanes([Sized("waits", 0), Sized("both", 2)], 2, lambda _: at_once.wait())


def test_one_core_runs_groups_one_by_one() -> None:
    order: list[str] = []
    groups = [Sized("a"), Sized("wide", 2), Sized("b")]
    run_in_lanes(groups, 1, lambda group: order.extend([group.name, f"{group.name} ended"]))
    assert order == ["a", "a ended", "wide", "wide ended", "b", "b ended"]


def test_an_error_of_a_group_ends_the_run() -> None:
    begun: list[str] = []

    def run(group: Sized) -> None:
        begun.append(group.name)
        raise ValueError(group.name)

    with pytest.raises(ValueError, match="a"):
        run_in_lanes([Sized("a"), Sized("b")], 1, run)
    assert begun == ["a"]
