"""The start of a node, in order: log directories, the quorum, registration, logs, clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kwire.config.broker_config import BrokerConfig
from kwire.log.directories.manager import LogManager
from kwire.membership.lifecycle import BrokerLifecycle
from kwire.node.early_topics import EarlyTopics
from kwire.node.listeners import Listeners
from kwire.node.loading_logs import LogLoading
from kwire.node.metadata_quorum import MetadataQuorum
from kwire.node.quorum_opening import QuorumOpening
from kwire.node.start_error import StartError
from kwire.node.waiting import end_of
from kwire.pending import Pending

logger = logging.getLogger(__name__)

STILL_WAITING_S = 5.0
REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"


class StartSequence:
    """See the module. `identified(cluster id)` is called once the log directories have an identity,
    `caught_up()` once what was published is the committed metadata as it stands, `replicate()`
    begins to watch followers and to fetch what others lead. `start_early(name)`: whether a listener
    of the controller serves before it has caught up."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: BrokerConfig,
        *,
        caught_up: Callable[[], None],
        start_early: Callable[[str], bool],
        opening: QuorumOpening,
        identified: Callable[[str], None],
        listeners: Listeners,
        quorum: MetadataQuorum,
        lifecycle: BrokerLifecycle,
        loading: LogLoading,
        logs: LogManager,
        replicate: Callable[[], None],
        early_topics: EarlyTopics,
    ) -> None:
        self._loop = loop
        self._config = config
        self._caught_up = caught_up
        self._start_early = start_early
        self._opening = opening
        self._identified = identified
        self._listeners = listeners
        self._quorum = quorum
        self._lifecycle = lifecycle
        self._loading = loading
        self._logs = logs
        self._replicate = replicate
        self._early_topics = early_topics

    async def run(self, addressed: Callable[[], None]) -> None:
        """Return when the node serves; `addressed()` is called once the listeners have addresses:
        what comes may take as long as other nodes are missing. Raises StartError and ConfigError,
        one line each."""
        config = self._config
        self._identified(await self._opening.run())
        if config.is_broker:
            await self._listeners.bind_broker()
        await self._listeners.start_controller(self._start_early)
        addressed()
        limit_ms = None if config.is_controller else config[REGISTRATION_TIMEOUT]
        await self._done(self._quorum.start(), "an active controller", limit_ms)
        if config.is_broker:
            await self._start_broker()
        else:
            self._caught_up()
            await self._listeners.start()

    async def _start_broker(self) -> None:
        """Register, catch up with the metadata, load the logs, serve."""
        lifecycle = self._lifecycle
        self._quorum.on_leader_change(lifecycle.controller_changed)
        lifecycle.start()
        limit_ms = self._config[REGISTRATION_TIMEOUT]
        await self._done(lifecycle.caught_up, "the registration of this broker", limit_ms)
        self._caught_up()
        await self._loading.run()
        self._replicate()
        lifecycle.ready_to_serve()
        await self._done(lifecycle.started, "the controller to let this broker serve")
        await self._done(self._early_topics.made(), "internal topics")
        await self._listeners.start()
        self._logs.start_timers()

    async def _done(self, pending: Pending[None], what: str, limit_ms: int | None = None) -> None:
        """Wait for a part of the start, and say so where others take long; StartError at the
        limit."""
        loop = self._loop
        future = end_of(loop, pending)
        end_s = None if limit_ms is None else loop.time() + limit_ms / 1000
        while not future.done():
            if end_s is not None and loop.time() >= end_s:
                raise StartError(f"waited {limit_ms} ms for {what}, without success")
            wait_s = STILL_WAITING_S * 2
            if end_s is not None:
                wait_s = min(wait_s, max(0.0, end_s - loop.time()))
            timer = loop.call_later(STILL_WAITING_S, logger.info, "waiting for %s", what)
            try:
                await asyncio.wait_for(asyncio.shield(future), wait_s)
            except TimeoutError:
                continue
            finally:
                timer.cancel()
