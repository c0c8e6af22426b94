"""Connections that wait to be served, one behind the other on each listener (KIP-402, KIP-612).

Kafka does not accept a connection before it may be served. Here it is accepted, and nothing of it
is read until then: clients see the same. Not more than `HELD_MAX` wait on a listener; what comes
beyond is closed, as the kernel refuses what is beyond its backlog.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

from kwire.server.connection_limits import ConnectionLimits, address_of

logger = logging.getLogger(__name__)

HELD_MAX = 1024
TOO_MANY = "too many connections"


class Held(Protocol):
    """`kwire.server.connection.BrokerConnection`: what is made to wait."""

    listener_name: str
    client_host: str
    last_active_s: float

    def hold(self, is_held: bool) -> None:
        """Read nothing, or go on reading."""
        ...

    def close(self, reason: str, level: int = logging.INFO) -> None: ...


class _Queue:
    """The connections of one listener that wait. Only for the first one it is known from when on
    the rates allow it."""

    __slots__ = ("allowed_s", "timer", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Held] = deque()
        self.allowed_s: float | None = None
        self.timer: asyncio.TimerHandle | None = None


class ConnectionAdmission:
    """The connections of a broker's listeners: which are served, wait, or are turned away."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
    ) -> None:
        self._loop = loop
        self.limits = limits
        self._queues = {name: _Queue() for name in limits.counts}
        self._served: dict[Held, None] = {}
        self._refused: dict[Held, asyncio.TimerHandle] = {}
        limits.on_change(self._limits_changed)

    def opened(self, connection: Held) -> None:
        """A connection came: serve it, make it wait, or close it."""
        queue = self._queues[connection.listener_name]
        if len(queue.waiting) >= HELD_MAX:
            connection.close(TOO_MANY)
            return
        queue.waiting.append(connection)
        if len(queue.waiting) == 1:
            self._serve(connection.listener_name, queue)
        if connection not in self._served:
            connection.hold(True)

    def closed(self, connection: Held) -> None:
        """A connection is gone, whatever it was."""
        listener = connection.listener_name
        if self._served.pop(connection, self) is None:
            self.limits.remove(listener, address_of(connection.client_host))
            self._settle()
            return
        refused = self._refused.pop(connection, None)
        if refused is not None:
            refused.cancel()
        queue = self._queues[listener]
        if connection in queue.waiting:
            is_first = queue.waiting[0] is connection
            queue.waiting.remove(connection)
            if is_first:
                queue.allowed_s = None
                self._serve(listener, queue)

    def close(self) -> None:
        """Nobody is served any more."""
        for queue in self._queues.values():
            queue.waiting.clear()
            if queue.timer is not None:
                queue.timer.cancel()
        for timer in self._refused.values():
            timer.cancel()
        self._refused.clear()

    def _limits_changed(self) -> None:
        self._evict()
        self._settle()

    def _settle(self) -> None:
        """There may be room for those who wait."""
        for listener, queue in self._queues.items():
            if queue.waiting:
                self._serve(listener, queue)

    def _serve(self, listener: str, queue: _Queue) -> None:
        """Serve who waits, in order, as far as the limits allow it now."""
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        limits = self.limits
        while queue.waiting:
            now_s = self._loop.time()
            if queue.allowed_s is None:
                queue.allowed_s = now_s + limits.wait_ms(listener, int(now_s * 1000)) / 1000
            if queue.allowed_s > now_s:
                queue.timer = self._loop.call_at(
                    queue.allowed_s, self._serve_later, listener, queue
                )
                return
            if not limits.has_slot(listener):
                return  # until one is closed
            queue.allowed_s = None
            self._admit(listener, queue.waiting.popleft(), now_s)

    def _serve_later(self, listener: str, queue: _Queue) -> None:
        queue.timer = None
        self._serve(listener, queue)

    def _admit(self, listener: str, connection: Held, now_s: float) -> None:
        host = address_of(connection.client_host)
        wait_ms = self.limits.address_wait_ms(listener, host, int(now_s * 1000))
        if wait_ms > 0:
            self._refuse(connection, wait_ms)
            return
        self._served[connection] = None
        if not self.limits.add(listener, host):
            connection.close(TOO_MANY)
            return
        connection.hold(False)
        self._evict()

    def _refuse(self, connection: Held, wait_ms: int) -> None:
        """Close a connection of an address that opens them too fast: later, so that a client that
        tries again at once does not come faster for it."""
        reason = "its address opens connections too fast"
        if len(self._refused) >= HELD_MAX:
            connection.close(reason, logging.DEBUG)
            return
        self._refused[connection] = self._loop.call_later(
            wait_ms / 1000, connection.close, reason, logging.DEBUG
        )

    def _evict(self) -> None:
        """Close those that were used least recently, of listeners that are not protected."""
        excess = self.limits.excess
        if not excess:
            return
        others = [one for one in self._served if not self.limits.is_protected(one.listener_name)]
        others.sort(key=lambda one: one.last_active_s)
        for connection in others[:excess]:
            connection.close("the broker has more connections than max.connections")
