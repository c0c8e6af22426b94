"""Brokers that serve many tests: started when first needed, stopped at the end of the run.

A test program restarts one through a command (`restart_command`), because it may run in a process
of its own: the state of each broker (arguments, pid) is a file in the run's directory.

    python -m tests.runner.served restart STATE_FILE
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

READY_PREFIX = b"kwire ready on "
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0

# Name -> options: the special brokers of tests/cases/README.md.
SPECIAL: dict[str, dict[str, str]] = {
    "short-retention": {
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "5000",
    },
    "idle3s": {"connections.max.idle.ms": "3000"},
}


class BrokerDidNotStart(Exception):
    """The broker of a test run did not become ready."""


class ServedBrokers:
    """The brokers of one test run."""

    def __init__(self, python: str, logs: pathlib.Path) -> None:
        self.python = python
        self.logs = logs
        self._directory = tempfile.TemporaryDirectory(prefix="kwire-served-")
        self._ports: dict[str, int] = {}
        self._starting = threading.Lock()  # groups run at the same time

    def state_file(self, name: str) -> pathlib.Path:
        return pathlib.Path(self._directory.name) / f"{name}.json"

    def bootstrap(self, name: str = "main") -> str:
        """`host:port` of the broker of this name, started on first use."""
        with self._starting:
            return self._bootstrap(name)

    def _bootstrap(self, name: str) -> str:
        if name not in self._ports:
            data = pathlib.Path(self._directory.name) / f"{name}-data"
            arguments = [self.python, "-m", "kwire", "serve", "--data-dir", str(data)]
            for setting, value in SPECIAL.get(name, {}).items():
                arguments += ["-o", f"{setting}={value}"]
            state = {
                "arguments": arguments,
                "log": str(self.logs / f"broker-{name}.log"),
                "port": 0,
                "pid": 0,
            }
            self.state_file(name).write_text(json.dumps(state))
            self._ports[name] = start(self.state_file(name))
        return f"127.0.0.1:{self._ports[name]}"

    def restart_command(self) -> str:
        """A shell command that restarts the broker named by CHECKS_BROKER."""
        module = shlex.quote(self.python) + " -m tests.runner.served restart"
        return f'{module} "{self._directory.name}/$CHECKS_BROKER.json"'

    def close(self) -> None:
        for name in self._ports:
            stop(self.state_file(name))
        self._directory.cleanup()


def start(state_file: pathlib.Path) -> int:
    """Start the broker of a state file on its port; returns the port once it is ready."""
    state = json.loads(state_file.read_text())
    with open(state["log"], "ab") as log:
        process = subprocess.Popen(
            [*state["arguments"], "--listen", f"127.0.0.1:{state['port']}"],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        port = _wait_ready(process)
    except BrokerDidNotStart as error:
        process.kill()
        process.wait()
        raise BrokerDidNotStart(f"{error}; see {state['log']}") from None
    state.update(pid=process.pid, port=port)
    state_file.write_text(json.dumps(state))
    return port


def _wait_ready(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    deadline = time.monotonic() + READY_TIMEOUT_S
    text = b""
    while b"\n" not in text:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise BrokerDidNotStart("the broker was not ready in time")
        if select.select([process.stdout], [], [], left_s)[0]:
            piece = os.read(process.stdout.fileno(), 4096)
            if not piece:
                raise BrokerDidNotStart(f"the broker ended with status {process.wait()}")
            text += piece
    line = text.split(b"\n", 1)[0]
    if not line.startswith(READY_PREFIX):
        raise BrokerDidNotStart(f"unexpected first line {line!r}")
    process.stdout.close()
    return int(line.rsplit(b":", 1)[1])


def stop(state_file: pathlib.Path) -> None:
    """Stop the broker of a state file in order; kill it when it does not end."""
    state = json.loads(state_file.read_text())
    pid = state["pid"]
    if not pid:
        return
    for number, limit_s in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, STOP_TIMEOUT_S)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if _ended(pid, limit_s):
            break
    state["pid"] = 0
    state_file.write_text(json.dumps(state))


def _ended(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            # Not our child: a restart was asked for by another process.
            if not _runs(pid):
                return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main() -> None:
    """The command line of restarts."""
    action, path = sys.argv[1:3]
    if action != "restart":
        raise SystemExit(f"unknown action {action}")
    stop(pathlib.Path(path))
    start(pathlib.Path(path))


if __name__ == "__main__":
    main()
