"""Results of test groups, and the lists of what may fail."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Result:
    """What a group of tests came to; `notes` are lines for people, worst first.

    `crashes` are those of `failed` that are no test: the program crashed after its last one.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    crashes: int = dataclasses.field(default=0, kw_only=True)
    notes: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Result) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.crashes += other.crashes
        self.notes += other.notes

    @classmethod
    def failure(cls, note: str) -> Result:
        return cls(failed=1, notes=[note])

    @classmethod
    def skip(cls, note: str) -> Result:
        return cls(skipped=1, notes=[f"skipped: {note}"])


@dataclasses.dataclass(frozen=True)
class Paths:
    """Where this run keeps its things: caches outside of the clone, logs inside of it."""

    cache: pathlib.Path
    logs: pathlib.Path
    python: str

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a test program."""
        environment = dict(os.environ)
        environment.update(
            WORK=str(self.cache / "clients"),
            CLIENTS_DIR=str(self.cache / "clients"),
            PYTHON=self.python,
            PYTHONDONTWRITEBYTECODE="1",
            KWIRE_CACHE=str(self.cache),
            **more,
        )
        return environment


@dataclasses.dataclass
class Outcome:
    """A finished program: exit status (None: killed at its time limit), its output, seconds."""

    status: int | None
    output: str
    seconds: float


def run_program(
    command: Sequence[str | os.PathLike[str]],
    *,
    log: pathlib.Path,
    environment: Mapping[str, str],
    limit_s: float,
    cwd: pathlib.Path = ROOT,
) -> Outcome:
    """Run a program in a process group of its own, its output in `log`, ended at the limit."""
    started = time.monotonic()
    with open(log, "wb") as sink:
        with _starting:
            if _ended.is_set():
                raise RunEnded(os.fspath(command[0]))
            process = subprocess.Popen(
                [os.fspath(part) for part in command],
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=dict(environment),
                cwd=cwd,
                start_new_session=True,
            )
            _running[process.pid] = process
        status: int | None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end_group(process)
            _running.pop(process.pid, None)
    text = log.read_text(errors="replace")
    return Outcome(status, text, time.monotonic() - started)


class RunEnded(Exception):
    """The whole run was ended: no program begins any more."""


_running: dict[int, subprocess.Popen[bytes]] = {}
_starting = threading.Lock()
_ended = threading.Event()


def end_all() -> None:
    """End the programs that still run, for good: a group's thread may want to start the next one
    (the second run of what it takes for a failure)."""
    with _starting:
        _ended.set()
        running = list(_running.values())
    for process in running:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the program left behind: only its own process group."""
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read_allowed(path: pathlib.Path) -> dict[str, str]:
    """`allowed.tsv`: name -> why it may fail now. Lines that start with # are comments."""
    allowed: dict[str, str] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition("\t")
                if not reason.strip():
                    raise SystemExit(f"{path}: {name} has no reason")
                allowed[name] = reason.strip()
    return allowed


def judge(program: str, outcomes: Mapping[str, str], allowed: Mapping[str, str]) -> Result:
    """Count cases (name -> pass, fail or skip) against the list of those that may fail.

    The list names a case, or `program/case` where programs share names. A listed case that fails
    counts as skipped, with its reason; one that passes is a failure, so that the list shrinks.
    """
    result = Result()
    for name, outcome in outcomes.items():
        reason = allowed.get(f"{program}/{name}") or allowed.get(name)
        if reason:
            if outcome == "pass":
                result.failed += 1
                result.notes.append(f"{program} {name}: passes, take it off allowed.tsv")
            else:
                result.skipped += 1
                result.notes.append(f"skipped: {program} {name}: {reason}")
        elif outcome == "pass":
            result.passed += 1
        elif outcome == "skip":
            result.skipped += 1
            result.notes.append(f"skipped: {program} {name}: the client cannot")
        else:
            result.failed += 1
            result.notes.append(f"{program} {name}: failed")
    return result
