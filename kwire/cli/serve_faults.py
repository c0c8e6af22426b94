"""What `kwire serve` has for faults on command, where its settings ask for them."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Awaitable, Callable

from kwire.clock import SkewedClock
from kwire.config.broker_config import BrokerConfig
from kwire.log.faulty_files import FaultyFiles
from kwire.node.fault_control import FaultControl, FaultSettings
from kwire.node.faults import FaultyNode, faults_of

logger = logging.getLogger(__name__)


class ServedFaults:
    """`files` and `clock` are those that the node is made with; `addresses` where the control API
    listens, from `start` on. ConfigError names a setting that cannot be right."""

    def __init__(self, config: BrokerConfig) -> None:
        self._settings = FaultSettings.of(config)
        self.files = FaultyFiles()
        self.clock = SkewedClock()
        self._control: FaultControl | None = None

    @property
    def addresses(self) -> list[str]:
        return [] if self._control is None else self._control.addresses

    def attach(self, node: FaultyNode) -> None:
        """The node has been made."""
        faults = faults_of(node, self.files, self.clock, self._lose_power)
        self._control = FaultControl(self._settings, faults)

    async def start(self, start_node: Callable[[], Awaitable[None]]) -> None:
        """Listen, and start the node; StartError."""
        assert self._control is not None
        await self._control.start()
        logger.warning("faults on command: %s can break this broker", ", ".join(self.addresses))
        await start_node()

    def stop(self) -> None:
        if self._control is not None:
            self._control.stop()

    def _lose_power(self) -> None:
        """On the loop, so that nothing of it runs between the loss and the end; a thread may write
        once more, into what the next start recovers."""
        self.files.lose_power()
        os.kill(os.getpid(), signal.SIGKILL)
