"""Spark for tests: where the connector's jars are, jobs as processes and in this process."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from argparse import Namespace
from typing import Any, NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB_TIMEOUT_S = 600
# Short jobs on a shared machine: little compiling, little memory, two tasks at a time.
FAST = (
    "--master",
    "local[2]",
    "--spark-conf",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -Xshare:auto",
    "--spark-conf",
    "spark.driver.memory=1g",
    "--spark-conf",
    "spark.sql.shuffle.partitions=2",
)


def connector_jars() -> str:
    """The folder of the connector's jars; skips the test without Java, PySpark or the jars."""
    for module in ("pyspark", "pyarrow", "pandas", "confluent_kafka"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    folder = cache / "spark-jars"
    if not (folder / "complete").exists():
        if shutil.which("mvn") is None:
            pytest.skip("needs Maven, or the connector's jars in KWIRE_CACHE")
        script = ROOT / "compat_tests" / "peers" / "fetch-spark-jars.sh"
        subprocess.run([script, folder], check=True, stdout=subprocess.DEVNULL, timeout=600)
    return str(folder)


class Outcome(NamedTuple):
    """What a job left: exit status, summary (None without), stderr."""

    status: int
    summary: dict[str, Any] | None
    stderr: str


def command(job: str, *arguments: str) -> list[str]:
    """The command line of a job."""
    return [sys.executable, "-m", "kwire", "spark", job, *arguments, *FAST]


def run_process(job: str, *arguments: str, timeout_s: float = JOB_TIMEOUT_S) -> Outcome:
    """Run a job as a process of its own."""
    done = subprocess.run(
        command(job, *arguments),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Outcome(done.returncode, summary_of(done.stdout), done.stderr)


def start_process(job: str, *arguments: str, log: pathlib.Path) -> subprocess.Popen[str]:
    """Start a job; it and Spark's JVM are a process group of their own, to be killed as one."""
    with log.open("a") as file:
        return subprocess.Popen(
            command(job, *arguments),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,
        )


def session_options(jars: str, conf: list[str], packages: str | None = None) -> Namespace:
    """What `open_session` takes of a job's options."""
    return Namespace(master="local[2]", jars=jars, spark_conf=conf, packages=packages)


def lost_jvm() -> str | None:
    """What became of this process' JVM when its Spark context is stopped, and what was known of
    it forgotten: the next session starts another. None while it runs (or never did)."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kwire.spark import session

    why = session.lost_jvm()
    if why is None:
        return None
    gateway = SparkContext._gateway
    assert gateway is not None
    process = gateway.proc
    if process.poll() is None:
        process.kill()
    status = process.wait()
    process.stdin.close()
    gateway.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    return f"Spark's JVM is gone ({why}): status {status}"


def table(spark: Any, lake: str, topic: str, kind: str = "topic") -> Any:
    """A topic's table of a lake, as any reader of Delta has it."""
    return spark.read.format("delta").load(f"{lake}/{kind}.{topic}")


def dead_letters(spark: Any, lake: str, topic: str) -> Any:
    """The table of a topic's values that could not be decoded."""
    return table(spark, lake, topic, "dead_letter")


def commits(lake: str) -> int:
    """How many commits the tables of a lake have had, as far as their logs reach."""
    return sum(1 for _ in pathlib.Path(lake).glob("*/_delta_log/*.json"))


def summary_of(text: str) -> dict[str, Any] | None:
    """The last line that is JSON."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return None
