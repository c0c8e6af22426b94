"""An Apache Kafka node among those of a cluster, run by the peers' script.

Cluster(tmp_path, combined=(1,), brokers=(4,), kinds={4: KafkaNode})  # a Kafka broker joins
Cluster(tmp_path, combined=(1,), brokers=(4,), kinds={1: KafkaNode})  # the other way round
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from kwire.testing.cluster import Node, NodeFailed, Place
from tests.support.kafka import RUN, kafka_libs

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 90


class KafkaNode(Node):
    """See the module. The directory is formatted by the cluster, as those of kwire's nodes are."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._folder = place.root / f"kafka-{place.node_id}"
        self._started_log = place.root / f"kafka-{place.node_id}.start"
        self._starting: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self._folder / "node-1" / "data"  # where the script keeps it

    @property
    def is_running(self) -> bool:
        return self._pid_path.exists()

    @property
    def _pid_path(self) -> Path:
        return self._folder / "node-1" / "pid"

    def start(self) -> None:
        command = [str(RUN), "start", "--libs", str(kafka_libs()), "--dir", str(self._folder)]
        command += ["--port", str(self.port), "--id", str(self.node_id)]
        command += ["--wait", str(START_TIMEOUT_S)]
        for name, value in self.settings.items():
            command += ["--prop", f"{name}={value}"]
        environment = {**os.environ, "JIT_LEVEL": "1", "NO_FORMAT": "1"}
        with self._started_log.open("wb") as output:
            self._starting = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=output
            )

    def wait_ready(self) -> None:
        assert self._starting is not None, f"Kafka node {self.node_id} was not started"
        try:
            status = self._starting.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            status = -1
        if status:
            raise NodeFailed(
                f"Kafka node {self.node_id}: not ready:\n{self._started_log.read_text()}"
            )

    def stop(self) -> None:
        if self.is_running:
            self._stop_by_script()

    def kill(self) -> None:
        self._stop_by_script("--kill")

    def pause(self) -> None:
        os.kill(int(self._pid_path.read_text()), signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(int(self._pid_path.read_text()), signal.SIGCONT)

    def close(self) -> None:
        if self._starting is not None and self._starting.poll() is None:
            self._starting.kill()
            self._starting.wait(STOP_TIMEOUT_S)
        if self.is_running:
            self.kill()

    def log_text(self) -> str:
        path = self._folder / "node-1" / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _stop_by_script(self, *more: str) -> None:
        command = [str(RUN), "stop", "--dir", str(self._folder), *more]
        subprocess.run(command, timeout=STOP_TIMEOUT_S, check=True)
