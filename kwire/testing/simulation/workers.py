"""Processes that run seeds: each with one order of sets, and stand-ins before all imports.

A line of JSON goes to a worker for each seed, one comes back. Whatever the application prints
goes nowhere: what is told of a run is in its history.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import IO

from kwire.python_module import python_module
from kwire.testing.simulation.options import Options
from kwire.testing.simulation.outcomes import Outcome, outcome_of
from kwire.testing.simulation.simulated_test import SimulatedTest

RUN_LIMIT_S = 900.0
HASH_SEED = "0"


class WorkerFailed(Exception):
    """A worker ended or does not end."""


class Worker:
    """One process; `ask` begins a run, `answer` waits for its outcome."""

    def __init__(self, test: SimulatedTest, arguments: Mapping[str, object]) -> None:
        function = test.function
        self._job = {
            "path": test.file,
            "module": function.__module__,
            "name": function.__qualname__,
            "arguments": base64.b64encode(pickle.dumps(dict(arguments))).decode(),
        }
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [*python_module("kwire.testing.simulation"), "worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.seed = -1
        self._ends_s = 0.0

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def ask(self, options: Options) -> None:
        """Begin a run."""
        self.seed = options.seed
        self._ends_s = time.monotonic() + RUN_LIMIT_S
        job = {**self._job, "options": _plain(options)}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `answer` says so

    @property
    def left_s(self) -> float:
        """How long the run that was begun may still take."""
        return max(0.0, self._ends_s - time.monotonic())

    def answer(self) -> Outcome:
        """The outcome of the run that was begun; WorkerFailed."""
        if not select.select([self.output], [], [], self.left_s)[0]:
            raise WorkerFailed(
                f"seed {self.seed} is not over after {RUN_LIMIT_S:.0f} s of real time: something "
                "in the application does not let the loop go on"
            )
        line = self.output.readline()
        if not line:
            raise WorkerFailed(f"the process that ran seed {self.seed} has ended")
        found = json.loads(line)
        if "refused" in found:
            raise WorkerFailed(found["refused"])
        for name in ("faults", "operations"):
            found[name] = tuple(found[name])
        return Outcome(**found)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def _plain(options: Options) -> dict[str, object]:
    plain = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
    for name in ("faults", "operations"):
        if plain[name] is not None:
            plain[name] = sorted(plain[name])
    return plain


def work() -> None:
    """The worker's side, until its input ends."""
    from kwire.testing.simulation.loading import load

    results = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for line in sys.stdin.buffer:
        job = json.loads(line)
        try:
            test = load(job["path"], job["name"], job["module"])
            arguments = pickle.loads(base64.b64decode(job["arguments"]))
            raw = job["options"]
            for name in ("faults", "operations"):
                raw[name] = None if raw[name] is None else frozenset(raw[name])
            raw["kinds"] = tuple(raw["kinds"])
            outcome = outcome_of(test.function, arguments, Options(**raw))
            answer = dataclasses.asdict(outcome)
        except Exception as error:
            answer = {"refused": f"{type(error).__name__}: {error}"}
        results.write(json.dumps(answer).encode() + b"\n")
        results.flush()
