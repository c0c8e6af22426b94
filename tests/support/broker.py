"""Broker processes for tests: start with options, wait for the ready line, stop, kill, start again.

    with BrokerProcess() as broker:            # throw-away directory, port 0
        client = KafkaClient(broker.bootstrap)

    broker = BrokerProcess(data_dir=tmp_path, options={"log.segment.bytes": 1048576})
    broker.start(); broker.kill(); broker.start(); broker.stop()

A broker listens on a port of its own (`port=0` picks one; a restart keeps it, so that clients find
it again). `stderr_text()` is what it logged so far.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

READY_PREFIX = "kwire ready on "
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0


class BrokerFailed(AssertionError):
    """The process ended, or did not become ready in time; carries its log."""


class BrokerProcess:
    """One `kwire serve` process.

    `data_dir=None` serves `--ephemeral`. `options` become `-o name=value`, `properties` a
    `server.properties` file given by `--config`, `environment` is added to the process' own.
    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        options: Mapping[str, object] | None = None,
        properties: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        pass_listen: bool = True,
    ) -> None:
        self.data_dir = None if data_dir is None else Path(data_dir)
        self.host = host
        self.port = port
        self.options = dict(options or {})
        self.properties = None if properties is None else dict(properties)
        self.environment = dict(environment or {})
        self.arguments = list(arguments)
        self.pass_listen = pass_listen
        self.process: subprocess.Popen[bytes] | None = None
        self.ready_s = 0.0
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._properties_path: str | None = None

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """`host:port`, as clients want it; an IPv6 host is in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker was not started"
        return self.process.pid

    def command(self) -> list[str]:
        """The command line of the next start."""
        line = [sys.executable, "-m", "kwire", "serve"]
        if self.pass_listen:
            line += ["--listen", self.bootstrap]
        if self.properties is not None:
            line += ["--config", self._write_properties()]
        if self.data_dir is not None:
            line += ["--data-dir", str(self.data_dir)]
        elif self.properties is None:
            line += ["--ephemeral"]
        for name, value in self.options.items():
            line += ["-o", f"{name}={value}"]
        return line + self.arguments

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> BrokerProcess:
        """Start and wait for the ready line; raises BrokerFailed with the log."""
        assert self.process is None or self.process.poll() is not None, "already running"
        environment = {**os.environ, **self.environment}
        started = time.monotonic()
        self.process = subprocess.Popen(
            self.command(),
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        try:
            self._wait_ready(started + timeout_s)
        except BaseException:
            self.kill()
            raise
        self.ready_s = time.monotonic() - started
        return self

    def _wait_ready(self, deadline: float) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        stream = self.process.stdout
        text = b""
        while b"\n" not in text:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise BrokerFailed(f"not ready in time; log:\n{self.stderr_text()}")
            if not select.select([stream], [], [], left_s)[0]:
                continue
            piece = os.read(stream.fileno(), 4096)
            if not piece:
                status = self.process.wait()
                raise BrokerFailed(f"ended with status {status}; log:\n{self.stderr_text()}")
            text += piece
        line = text.split(b"\n", 1)[0].decode()
        if not line.startswith(READY_PREFIX):
            raise BrokerFailed(f"unexpected first line {line!r}")
        self.port = int(line.rsplit(":", 1)[1])

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to stop; returns its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
                raise BrokerFailed(f"did not stop; log:\n{self.stderr_text()}") from None
        self._release()
        return self.process.returncode

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self._release()

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> BrokerProcess:
        """Stop in order and start again on the same port."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop whatever runs and forget temporary files."""
        try:
            if self.process is not None and self.process.poll() is None:
                self.stop()
        finally:
            self._release()
            self._stderr.close()
            if self._properties_path is not None:
                os.unlink(self._properties_path)
                self._properties_path = None

    def stderr_text(self) -> str:
        """Everything logged so far, over all starts."""
        size_bytes = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), size_bytes, 0).decode(errors="replace")

    def rss_kb(self) -> int:
        """Resident memory of the process in KB (Linux)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise BrokerFailed("no VmRSS")

    def _write_properties(self) -> str:
        if self._properties_path is None:
            handle, self._properties_path = tempfile.mkstemp(suffix=".properties")
            os.close(handle)
        lines = [f"{name}={value}\n" for name, value in (self.properties or {}).items()]
        Path(self._properties_path).write_text("".join(lines))
        return self._properties_path

    def _release(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def running_broker(**arguments: object) -> Iterator[BrokerProcess]:
    """A started BrokerProcess with these keyword arguments, closed at the end."""
    broker = BrokerProcess(**arguments)  # type: ignore[arg-type]
    try:
        yield broker.start()
    finally:
        broker.close()
