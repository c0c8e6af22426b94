"""Brokers under measurement: start, readiness, CPU and memory of all their processes."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from kwire.testing.cluster import free_adjacent_ports

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
START_TIMEOUT_S = 120.0
LOWEST_NICE = 19


def with_bytecode(environment: dict[str, str]) -> dict[str, str]:
    """Without the variable that makes Python compile every module at every start: what pip
    installs is compiled."""
    return {k: v for k, v in environment.items() if k != "PYTHONDONTWRITEBYTECODE"}


def stand_aside() -> None:
    """This process stands for programs of another machine: it has the processor only while nobody
    else wants it (SCHED_IDLE on Linux, the lowest priority elsewhere)."""
    if sys.platform.startswith("linux"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(LOWEST_NICE)


def descendants(pid: int) -> list[int]:
    """A process and all processes below it."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    found = [pid]
    for child in children:
        found += descendants(int(child))
    return found


class Broker:
    """One running broker. `start_s` is the time until it accepted a connection."""

    def __init__(self, name: str, command: str, keep_log: pathlib.Path) -> None:
        self.name = name
        self.port = free_adjacent_ports()
        self.directory = tempfile.mkdtemp(prefix=f"bench-{name}-")
        self._log = open(keep_log, "ab")  # noqa: SIM115 - open as long as the broker runs
        started = time.monotonic()
        line = command.format(port=self.port, controller_port=self.port + 1, dir=self.directory)
        self._process = subprocess.Popen(
            ["bash", "-c", "exec " + line],
            stdout=self._log,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=with_bytecode(dict(os.environ)),
        )
        self._wait(started + START_TIMEOUT_S, keep_log)
        self.start_s = time.monotonic() - started

    def _wait(self, deadline: float, log: pathlib.Path) -> None:
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self._process.poll() is not None:
                    raise SystemExit(f"bench: {self.name} ended, see {log}") from None
                if time.monotonic() > deadline:
                    self.stop()
                    raise SystemExit(f"bench: {self.name} is not ready, see {log}") from None
                time.sleep(0.002)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    def cpu_s(self) -> float:
        """User and system time of all its processes so far."""
        total = 0
        for pid in descendants(self._process.pid):
            try:
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            fields = stat.rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS_PER_S

    def rss_mb(self) -> float:
        """Resident memory of all its processes."""
        total_kb = 0
        for pid in descendants(self._process.pid):
            try:
                lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            total_kb += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        return total_kb / 1024

    def stop(self) -> None:
        """Stop in order, or kill; its data goes."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
