"""Apache Kafka itself, for tests that ask it: one node on a random port, stopped at the end.

Needs Java and the jars (`make peers` fetches them to KWIRE_CACHE); without, tests are skipped.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from kwire.testing.cluster import free_adjacent_ports

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "compat_tests" / "peers" / "run-kafka.sh"
START_TIMEOUT_S = 150


def kafka_libs() -> pathlib.Path:
    """The folder of Kafka's jars; skips the test when there is none or no Java."""
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    libs = cache / "kafka" / "libs"
    if shutil.which("java") is None or not libs.is_dir():
        pytest.skip("needs Java and Kafka's jars (make peers)")
    return libs


@contextmanager
def running_kafka(
    directory: pathlib.Path,
    properties: Mapping[str, str] | None = None,
    controller_only: bool = False,
    format_arguments: str = "",
    port: int | None = None,
) -> Iterator[str]:
    """A started Kafka 4.4; yields its bootstrap address. The controller listens a port higher."""
    libs = kafka_libs()
    port = port or free_adjacent_ports()
    command = [str(RUN), "start", "--libs", str(libs), "--dir", str(directory)]
    command += ["--port", str(port)]
    if format_arguments:
        command += ["--format", format_arguments]
    settings = dict(properties or {})
    if controller_only:
        listener = f"CONTROLLER://127.0.0.1:{port + 1}"
        settings["process.roles"] = "controller"
        settings["listeners"] = settings["advertised.listeners"] = listener
    for name, value in settings.items():
        command += ["--prop", f"{name}={value}"]
    environment = {**os.environ, "JIT_LEVEL": "1"}
    try:
        started = subprocess.run(
            command,
            env=environment,
            timeout=START_TIMEOUT_S,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        yield started.stdout.strip()
    finally:
        subprocess.run([RUN, "stop", "--dir", directory], timeout=90, check=False)
