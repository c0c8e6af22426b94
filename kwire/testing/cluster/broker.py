"""One broker as a process: what most tests and users want."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from kwire.python_module import python_module
from kwire.testing.cluster.process import ServeProcess

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0

Setting = str | int | float | bool


class Broker:
    """One `kwire serve`.

    Without `data_dir` it serves `--ephemeral`: its data ends with its process. `options` become
    `-o name=value`, `properties` a `server.properties` file given by `--config`, `environment` is
    added to the process' own, `arguments` end the command line. `port=0` picks a port; a restart
    keeps it, so that clients find the broker again. `pass_listen` and `pass_storage`: whether the
    command line says where it listens and where its data is.
    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        options: Mapping[str, Setting] | None = None,
        properties: Mapping[str, Setting] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        pass_listen: bool = True,
        pass_storage: bool = True,
    ) -> None:
        self.data_dir = None if data_dir is None else Path(data_dir)
        self.host = host
        self.port = port
        self.options = dict(options or {})
        self.properties = None if properties is None else dict(properties)
        self.arguments = list(arguments)
        self.ready_s = 0.0
        self.process = ServeProcess("broker", environment=environment)
        self._pass_listen = pass_listen
        self._pass_storage = pass_storage
        self._properties_path: Path | None = None

    def __enter__(self) -> Self:
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
        return self.process.pid

    @property
    def environment(self) -> dict[str, str]:
        """Added to the process' own at the next start."""
        return self.process.environment

    def command(self) -> list[str]:
        """The command line of the next start."""
        line = [*python_module("kwire"), "serve"]
        if self._pass_listen:
            line += ["--listen", self.bootstrap]
        if self.properties is not None:
            line += ["--config", str(self._written_properties(self.properties))]
        if self.data_dir is not None:
            line += ["--data-dir", str(self.data_dir)]
        elif self.properties is None and self._pass_storage:
            line += ["--ephemeral"]
        for name, value in self.options.items():
            line += ["-o", f"{name}={value}"]
        return line + self.arguments

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start and wait until it serves. Raises NodeFailed with the log."""
        started = time.monotonic()
        self.process.start(self.command())
        try:
            address = self.process.wait_ready(timeout_s)[0]
        except BaseException:
            self.process.kill()
            raise
        self.port = int(address.rpartition(":")[2])
        self.ready_s = time.monotonic() - started
        return self

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to stop; its exit status."""
        return self.process.stop(number, timeout_s)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self.process.resume()

    def restart(self) -> Self:
        """Stop in order and start again on the same port."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop what runs and remove temporary files."""
        try:
            if self.process.is_running:
                self.stop()
        finally:
            self.process.close()
            if self._properties_path is not None:
                self._properties_path.unlink(missing_ok=True)
                self._properties_path = None

    def log_text(self) -> str:
        """Everything logged so far, over all starts."""
        return self.process.log_text()

    def rss_kb(self) -> int:
        """Resident memory of the process in KB (Linux)."""
        return self.process.rss_kb()

    def _written_properties(self, properties: Mapping[str, Setting]) -> Path:
        if self._properties_path is None:
            handle, path = tempfile.mkstemp(suffix=".properties")
            os.close(handle)
            self._properties_path = Path(path)
        lines = [f"{name}={value}\n" for name, value in properties.items()]
        self._properties_path.write_text("".join(lines))
        return self._properties_path
