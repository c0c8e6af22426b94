"""A broker as a process of its own: `kwire serve`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kwire.testing.brokers.runner import BrokerFailed, StartSettings, T
from kwire.testing.cluster.process import NodeFailed, ServeProcess


class ProcessRunner:
    """See `Runner`. `settings(port)` are the configs of the next start, `port` 0 at the first."""

    def __init__(self, name: str, settings: StartSettings, *, port: int = 0) -> None:
        self.name = name
        self.port = port
        self._settings = settings
        self._process = ServeProcess(name)
        self._is_paused = False

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def start(self) -> None:
        if self.is_running:
            raise BrokerFailed(f"{self.name} is running")
        self._is_paused = False
        command = [sys.executable, "-m", "kwire", "serve", "--no-http"]
        for name, value in self._settings(self.port).items():
            command += ["-o", f"{name}={value}"]
        try:
            self._process.start(command)
            address = self._process.wait_ready()[0]
        except NodeFailed as error:
            self._process.kill()
            raise BrokerFailed(str(error)) from None
        self.port = int(address.rpartition(":")[2])

    def stop(self) -> None:
        if self.is_running:
            self._process.stop()

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> None:
        self._running().pause()
        self._is_paused = True

    def resume(self) -> None:
        self._running().resume()
        self._is_paused = False

    @property
    def links(self) -> bool:
        return False

    def while_still(self, work: Callable[[], T]) -> T:
        if not self.is_running or self._is_paused:
            return work()
        self.pause()
        try:
            return work()
        finally:
            self.resume()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self._process.close()

    def log_text(self) -> str:
        return self._process.log_text()

    def _running(self) -> ServeProcess:
        if not self.is_running:
            raise BrokerFailed(f"{self.name} is not running")
        return self._process
