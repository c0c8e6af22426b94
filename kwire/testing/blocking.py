"""A client of a broker for tests that block: `kwire.client` on a loop in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.testing.loop_thread import LoopThread

T = TypeVar("T")


class BlockingClient:
    """Connects with its first call. A test on a loop of its own may use it too: the broker runs
    elsewhere. Threads of a test may share it, and a fork of its process has one of its own.

    `bootstrap()` says where, and raises where nobody can be asked.
    """

    def __init__(self, bootstrap: Callable[[], str]) -> None:
        self._bootstrap = bootstrap
        self._thread: LoopThread | None = None
        self._beginning = threading.Lock()
        self._cluster: tuple[str, Cluster] | None = None
        self._of_parent: tuple[object, object] | None = None
        """Connections of the process that this one is a fork of: they are not touched."""

    def run(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        """What `work` returns or raises, within a minute."""
        address = self._bootstrap()
        self._leave_parent()
        with self._beginning:
            if self._thread is None:
                self._thread = LoopThread("kwire-testing-client")
                self._thread.start()
            thread = self._thread
        return thread.run(self._do(address, work))

    def disconnect(self) -> None:
        """Forget what is known of the cluster; the next call connects anew."""
        self._leave_parent()
        if self._thread is not None:
            self._thread.run(self._forget())

    def close(self) -> None:
        """End the loop and its thread; nothing when they were not needed."""
        self._leave_parent()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.run(self._forget())
            thread.close()

    def _leave_parent(self) -> None:
        thread = self._thread
        if thread is not None and not thread.owner.is_here:
            self._of_parent = thread, self._cluster
            self._thread, self._cluster, self._beginning = None, None, threading.Lock()

    async def _do(self, address: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
        if self._cluster is None or self._cluster[0] != address:
            before, made = self._cluster, Cluster(ConnectionSettings(address, "kwire-testing"))
            self._cluster = address, made
            if before is not None:
                await before[1].close()
            return await work(made)
        return await work(self._cluster[1])

    async def _forget(self) -> None:
        before, self._cluster = self._cluster, None
        if before is not None:
            await before[1].close()
