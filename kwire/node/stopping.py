"""The end of a node, in order.

Clients and followers are served until the leaderships have moved; the controller's listeners stay
until the quorum has heard of the stop; then the logs are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.directories.manager import LogManager
from kwire.membership.controlled_shutdown import shutdown_granted
from kwire.membership.lifecycle import BrokerLifecycle
from kwire.node.failure import Failure
from kwire.node.listeners import Listeners
from kwire.node.waiting import end_of
from kwire.node.workers import Workers
from kwire.pending import Pending


class Closable(Protocol):
    """A part that ends at once."""

    def close(self) -> None: ...


class Quorum(Protocol):
    """This node's replica of the metadata quorum."""

    @property
    def waits_for(self) -> str:
        """What the metadata log is short of, empty while it is not."""
        ...

    def stop(self) -> Pending[None]: ...


class StopSequence:
    """See the module. `requesters` are closed before the clients' connections, `replicators` after
    them. `image()` is the published metadata, `is_loaded()` says whether all logs were loaded."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        lifecycle: BrokerLifecycle,
        failure: Failure,
        image: Callable[[], MetadataImage],
        requesters: Sequence[Closable],
        listeners: Listeners,
        replicators: Sequence[Closable],
        quorum: Quorum,
        workers: Workers,
        logs: LogManager,
        is_loaded: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._lifecycle = lifecycle
        self._failure = failure
        self._image = image
        self._requesters = requesters
        self._listeners = listeners
        self._replicators = replicators
        self._quorum = quorum
        self._workers = workers
        self._logs = logs
        self._is_loaded = is_loaded

    async def run(self) -> None:
        """Nothing raises."""
        loop, lifecycle = self._loop, self._lifecycle
        if lifecycle.epoch >= 0 and not self._nobody_answers():
            granted = end_of(loop, lifecycle.begin_shutdown())
            await shutdown_granted(loop, granted, self._nobody_answers)
        epoch = lifecycle.epoch
        lifecycle.close()
        for part in self._requesters:
            part.close()
        self._listeners.close_broker()
        for part in self._replicators:
            part.close()
        await end_of(loop, self._quorum.stop())
        self._listeners.close()
        checked = self._workers.checks_ended()
        if checked is not None:
            await end_of(loop, checked)
        await end_of(loop, self._logs.drained())
        self._logs.shutdown(epoch, is_loaded=self._is_loaded())
        self._workers.close()

    def _nobody_answers(self) -> bool:
        """Whether the only controller is this node's, and decides nothing."""
        is_stuck = self._failure.has_failed or bool(self._quorum.waits_for)
        return is_stuck and len(self._image().controllers) <= 1
