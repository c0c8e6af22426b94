"""A process that serves: start, wait for its ready line, stop, kill, pause; its log in a file."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from kwire.cli.cluster import READY_PREFIX

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 30.0
LOG_TAIL_CHARACTERS = 3000
READ_BYTES = 4096


class NodeFailed(AssertionError):
    """A process that ended, was not ready in time or did not stop; with the end of its log."""


class ServeProcess:
    """The process of one node (or of one command), and those that follow it after a restart.

    What a process writes to its standard error is added to `log_path` (by default a temporary
    file); the ready line is read from its standard output. `is_supervised`: its standard input is
    a pipe that ends with us, however we end, for commands that end with it; one that is paused
    could not, and is killed then.
    """

    def __init__(
        self,
        name: str,
        *,
        log_path: Path | None = None,
        environment: Mapping[str, str] | None = None,
        is_supervised: bool = False,
    ) -> None:
        self.name = name
        self.environment = dict(environment or {})
        self._is_own_log = log_path is None
        self.log_path = log_path or _temporary_log(name)
        if self._is_own_log:  # also where nobody calls `close`
            weakref.finalize(self, self.log_path.unlink, missing_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._output = b""
        self._is_paused = False
        self._is_supervised = is_supervised
        self._guard: subprocess.Popen[bytes] | None = None
        _running.add(self)

    @property
    def pid(self) -> int:
        """Of the present process, or of the last one."""
        return self._started().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str], cwd: str | os.PathLike[str] | None = None) -> None:
        """Start it; `wait_ready` waits."""
        assert not self.is_running, f"{self.name} is running"
        self._close_output()
        self._end_guard()  # of one that was paused, and was killed by somebody else
        self._output = b""
        self._is_paused = False
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                list(command),
                cwd=cwd,
                stdin=subprocess.PIPE if self._is_supervised else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> list[str]:
        """The addresses that its ready line names. Raises NodeFailed."""
        line = self._first_line(time.monotonic() + timeout_s)
        if not line.startswith(READY_PREFIX):
            raise self.failed(f"the first line is {line!r}")
        return line.removeprefix(READY_PREFIX).split(",")

    def _first_line(self, deadline: float) -> str:
        while b"\n" not in self._output:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self.failed("not ready in time")
            if self._read_output(left_s) == b"":
                raise self.failed(f"ended with status {self._started().wait(KILL_TIMEOUT_S)}")
        return self._output.split(b"\n", 1)[0].decode()

    def _read_output(self, timeout_s: float) -> bytes | None:
        """What came on the standard output; nothing at its end, None when the time is over."""
        stream = self._started().stdout
        assert stream is not None
        if stream.closed:
            return b""
        if not select.select([stream], [], [], timeout_s)[0]:
            return None
        piece = os.read(stream.fileno(), READ_BYTES)
        self._output += piece
        return piece

    def output_text(self) -> str:
        """What the present process has written to its standard output so far."""
        while self._read_output(0):
            pass
        return self._output.decode(errors="replace")

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """The exit status, once it has ended by itself. Raises NodeFailed."""
        try:
            return self._started().wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.failed(f"did not end in {timeout_s:.0f} s") from None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.is_running:
            self._started().send_signal(number)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to stop; its exit status. One that does not is killed, and NodeFailed raised."""
        self.send_signal(number)
        if self._is_paused:
            self.resume()
        try:
            return self.wait(timeout_s)
        except NodeFailed:
            self.kill()
            raise
        finally:
            self._close_output()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self.send_signal(signal.SIGKILL)
            self._process.wait(KILL_TIMEOUT_S)
            self._close_output()
            self._end_guard()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        if self._is_supervised and self._guard is None and self.is_running:
            self._guard = _guard_of(self.pid)
        self.send_signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self.send_signal(signal.SIGCONT)
        self._is_paused = False
        self._end_guard()

    def _end_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()

    def leave(self) -> None:
        """Of a fork: let go of what the process ends with, which is its starter's."""
        for one in (self._process, self._guard):
            if one is not None and one.stdin is not None:
                one.stdin.close()

    def close(self) -> None:
        """Kill what runs, forget a log that was temporary."""
        self.kill()
        if self._is_own_log:
            self.log_path.unlink(missing_ok=True)
        _running.discard(self)

    def log_text(self) -> str:
        """Everything logged so far, over all starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self) -> str:
        return self.log_text()[-LOG_TAIL_CHARACTERS:]

    def rss_kb(self) -> int:
        """Resident memory in KB (Linux)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise NodeFailed(f"{self.name}: its memory is not told")

    def failed(self, what: str) -> NodeFailed:
        """An error about this process."""
        return NodeFailed(f"{self.name}: {what}; log:\n{self.log_tail()}")

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    def _close_output(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self.output_text()
            self._process.stdout.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def logs() -> dict[str, str]:
    """Name -> end of its log, of every process that was started here and is not closed."""
    return {one.name: one.log_tail() for one in sorted(_running, key=lambda one: one.name)}


def _guard_of(pid: int) -> subprocess.Popen[bytes]:
    """A process that kills a stopped one at the end of its input: when we are gone."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r line; kill -KILL "$0"', str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _temporary_log(name: str) -> Path:
    handle, path = tempfile.mkstemp(prefix=f"{name.replace(' ', '-')}-", suffix=".log")
    os.close(handle)
    return Path(path)


def running() -> list[ServeProcess]:
    """Those that were made and not closed, by name."""
    return sorted(_running, key=lambda one: one.name)


def _leave_all() -> None:
    """A fork may outlive us, and would keep the pipes open."""
    for one in running():
        one.leave()


_running: weakref.WeakSet[ServeProcess] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_leave_all)
