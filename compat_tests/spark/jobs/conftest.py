"""Jobs in this process share one Spark session; brokers are kwire's."""

from __future__ import annotations

import contextlib
import importlib
import io
import pathlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import spark as support


@pytest.fixture(scope="session")
def jars() -> str:
    return support.connector_jars()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def run(jars: str) -> Callable[..., support.Outcome]:
    """run(job, *arguments): the job in this process."""

    def run_here(job: str, *arguments: str) -> support.Outcome:
        from kwire.spark.commands import JOBS
        from kwire.spark.job import EXIT_FAILED

        module = importlib.import_module(JOBS[job][0])
        out, err = io.StringIO(), io.StringIO()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = module.main([*arguments, "--jars", jars, *support.FAST])
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        told = err.getvalue()
        # A JVM that ends (once seen, cause unknown) fails the test it ends in, not all behind it.
        if status == EXIT_FAILED and (lost := support.lost_jvm()):
            told += f"{lost}\n"
        return support.Outcome(status, support.summary_of(out.getvalue()), told)

    return run_here


@pytest.fixture
def lake(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "lake")


@pytest.fixture
def spark(jars: str) -> Any:
    """The session that the jobs of this process use."""
    from kwire.spark.session import open_session

    support.lost_jvm()
    settings = [text for text in support.FAST if text.startswith("spark.")]
    options = support.session_options(jars, settings)
    return open_session(options, "tests", needs_kafka=True, needs_delta=True, sends=True)
