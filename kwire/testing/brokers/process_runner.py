"""A broker as a process of its own: `kwire serve`."""

from __future__ import annotations

import re
from collections.abc import Callable

from kwire.node.fault_client import FaultClient
from kwire.python_module import python_module
from kwire.testing.brokers.runner import (
    ANEW,
    HOST,
    BrokerFailed,
    FaultControl,
    GoingOn,
    StartSettings,
    Still,
    T,
)
from kwire.testing.brokers.unfinished import check_finished
from kwire.testing.cluster.process import NodeFailed, ServeProcess
from kwire.testing.owner import Owner
from kwire.testing.waiting import wait_until


class ProcessRunner:
    """See `Runner`. `settings(port)` are the configs of the next start, `port` 0 at the first.

    `has_faults`: faults on command are possible, which makes its disk slower.
    """

    def __init__(
        self, name: str, settings: StartSettings, *, port: int = 0, has_faults: bool = False
    ) -> None:
        self._has_faults = has_faults
        self._faults: FaultClient | None = None
        self.name = name
        self.port = port
        self._settings = settings
        self._process = ServeProcess(name, is_supervised=True)
        self._is_paused = False
        self._owner = Owner(name)

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def start(self, going_on: GoingOn = ANEW) -> None:
        self._owner.check()
        if self.is_running:
            raise BrokerFailed(f"{self.name} is running")
        settings = self._settings(self.port)
        check_finished(settings["log.dirs"])
        self._is_paused = False
        command = [*python_module("kwire"), "serve", "--no-http", "--supervised"]
        for name, value in settings.items():
            command += ["-o", f"{name}={value}"]
        if self._has_faults:
            command += ["-o", f"kwire.fault.listeners={HOST}:0"]
        try:
            self._process.start(command)
            address = self._process.wait_ready()[0]
        except NodeFailed as error:
            self._process.kill()
            raise BrokerFailed(str(error)) from None
        self.port = int(address.rpartition(":")[2])
        self._faults = FaultClient(self._control()) if self._has_faults else None

    def _control(self) -> str:
        """Where its control API listens, as it says behind its ready line."""
        found = wait_until(
            lambda: re.search(r"^faults on (\S+)$", self._process.output_text(), re.M),
            "the address of the control API of faults",
        )
        assert found is not None
        return found[1]

    def stop(self) -> None:
        self._owner.check()
        if self.is_running:
            self._process.stop()

    def kill(self) -> None:
        self._owner.check()
        self._process.kill()

    def lose_power(self) -> None:
        self.faults.add({"kind": "power-loss"})
        self._process.wait()
        self._process.kill()

    @property
    def faults(self) -> FaultControl:
        self._running()
        if self._faults is None:
            raise BrokerFailed(
                f"{self.name} is a process without faults on command: say process=True, faults=True"
            )
        if self._is_paused:
            raise BrokerFailed(f"{self.name} is paused and takes no faults: resume it first")
        return self._faults

    def pause(self) -> None:
        self._running().pause()
        self._is_paused = True

    def resume(self) -> None:
        self._running().resume()
        self._is_paused = False

    @property
    def links(self) -> bool:
        return False

    def while_still(self, work: Callable[[Still], T]) -> T:
        self._owner.check()
        if not self.is_running or self._is_paused:
            return work(Still())
        self.pause()
        try:
            return work(Still())
        finally:
            self.resume()

    def close(self) -> None:
        if not self._owner.is_here:
            return
        try:
            self.stop()
        finally:
            self._process.close()

    def log_text(self) -> str:
        return self._process.log_text()

    def _running(self) -> ServeProcess:
        self._owner.check()
        if not self.is_running:
            raise BrokerFailed(f"{self.name} is not running")
        return self._process
