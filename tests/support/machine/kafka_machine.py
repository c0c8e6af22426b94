"""Apache Kafka on a machine that is slow, loses power or has a wrong clock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kwire.testing.cluster import free_adjacent_ports
from tests.support.kafka import RUN, START_TIMEOUT_S, kafka_libs
from tests.support.machine.shim import Shim

STOP_TIMEOUT_S = 90


class KafkaMachine:
    """One node in `directory`, on one port from start to start."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        self._settings = settings
        self.data = directory / "node-1" / "data"
        self.shim = Shim(directory / "shim", str(self.data))
        self._port = free_adjacent_ports()
        self.bootstrap = f"127.0.0.1:{self._port}"

    def start(self, *held: str) -> None:
        """`held`: parts of the paths of files that can be held; all by default."""
        command = [str(RUN), "start", "--libs", str(kafka_libs()), "--dir", str(self._directory)]
        command += ["--port", str(self._port)]
        for name, value in self._settings.items():
            command += ["--prop", f"{name}={value}"]
        environment = {**os.environ, "JIT_LEVEL": "1", **self.shim.environment(*held)}
        subprocess.run(
            command,
            env=environment,
            timeout=START_TIMEOUT_S,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._stop_by_script()

    def lose_power(self) -> None:
        """Nothing is left of what was not synced; to be started again."""
        self._stop_by_script("--kill")
        assert self.shim.forget_unsynced(self.data), "something was not synced"

    def close(self) -> None:
        self._stop_by_script("--kill")
        self.shim.close()

    def _stop_by_script(self, *more: str) -> None:
        command = [str(RUN), "stop", "--dir", str(self._directory), *more]
        subprocess.run(command, timeout=STOP_TIMEOUT_S, check=True)


@contextmanager
def kafka_machine(directory: Path, settings: Mapping[str, str]) -> Iterator[KafkaMachine]:
    """Started, and ended."""
    machine = KafkaMachine(directory, settings)
    try:
        machine.start()
        yield machine
    finally:
        machine.close()
