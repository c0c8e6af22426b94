"""A client of a broker for tests that block: `kwire.client` on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings

CALL_TIMEOUT_S = 60.0

T = TypeVar("T")


class BlockingClient:
    """Connects with its first call. A test on a loop of its own may use it too: the broker runs
    elsewhere."""

    def __init__(self, bootstrap: Callable[[], str]) -> None:
        self._bootstrap = bootstrap
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._cluster: tuple[str, Cluster] | None = None

    def run(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        """What `work` returns or raises, within a minute."""
        loop = self._running_loop()
        return asyncio.run_coroutine_threadsafe(self._do(work), loop).result(CALL_TIMEOUT_S)

    def close(self) -> None:
        """End the loop and its thread; nothing when they were not needed."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._forget(), loop).result(CALL_TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CALL_TIMEOUT_S)
        loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="kwire-testing-client", daemon=True
            )
            self._thread.start()
        return self._loop

    async def _do(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        address = self._bootstrap()
        if self._cluster is None or self._cluster[0] != address:
            await self._forget()
            self._cluster = address, Cluster(ConnectionSettings(address, "kwire-testing"))
        return await work(self._cluster[1])

    async def _forget(self) -> None:
        if self._cluster is not None:
            await self._cluster[1].close()
            self._cluster = None
