"""`kwire serve --brokers N`: one command that starts N nodes, and starts those again that die."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from kwire.python_module import python_module
from kwire.testing.cluster.process import STOP_TIMEOUT_S, ServeProcess


class BrokersCommand:
    """The command as a process. Without `data_dir` its data is where the user's is."""

    def __init__(
        self,
        count: int = 3,
        *,
        data_dir: Path | None = None,
        log_path: Path | None = None,
        options: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.process = ServeProcess("brokers", log_path=log_path, environment=environment)
        self.addresses: list[str] = []
        storage = [] if data_dir is None else ["--data-dir", str(data_dir)]
        given = [
            part for name, text in (options or {}).items() for part in ("-o", f"{name}={text}")
        ]
        self._command = [
            *(*python_module("kwire"), "serve", "--brokers", str(count)),
            *(*storage, "--listen", "127.0.0.1:0", *given, *arguments),
        ]

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def start(self) -> None:
        self.process.start(self._command)

    def wait_ready(self) -> list[str]:
        """The addresses of the ready line, by node id."""
        self.addresses = self.process.wait_ready()
        return self.addresses

    def pids(self) -> list[int]:
        """The nodes' processes as the command names them, by node id."""
        found: dict[int, int] = {}
        for line in self.process.log_text().splitlines():
            words = line.split()
            if line.startswith("kwire: broker") and words[4:5] == ["process"]:
                found[int(words[2])] = int(words[5].rstrip(","))
        return [found[node] for node in sorted(found)]

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to stop; its exit status."""
        return self.process.stop(number, timeout_s)

    def close(self) -> None:
        """End it; the nodes end with it."""
        self.process.close()
