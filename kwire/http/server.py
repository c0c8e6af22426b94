"""Connections of the HTTP process, by uvicorn's protocol of h11, and their limits.

What uvicorn does not bound is bounded here: how long a request's head may take, how long a client
may leave an answer unread, and how many connections there are. Beyond that number one that waits
for its next request is closed for a new one; where all are busy the new one is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Callable

import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kwire.http.app import CONNECTION, HEAD_BYTES_MAX, refusal

KEEP_ALIVE_S = 75
"""Longer than a monitoring system's scrape interval is by default."""
WHY_CHARACTERS_MAX = 200


class ConnectionLimits:
    """How many connections, and for how long; all listeners of the process together."""

    def __init__(self, connections_max: int, timeout_s: float) -> None:
        self.connections_max = connections_max
        self.timeout_s = timeout_s
        self.open: dict[BoundedProtocol, None] = {}
        """In the order of what they did last."""

    def opened(self, connection: BoundedProtocol) -> None:
        """Make room for it, or close it."""
        self.open[connection] = None
        if len(self.open) > self.connections_max:
            idle = next((one for one in self.open if one.is_idle), connection)
            idle.transport.abort()
            self.open.pop(idle, None)

    def used(self, connection: BoundedProtocol) -> None:
        """Something arrived on it."""
        if self.open.pop(connection, self) is None:
            self.open[connection] = None

    def closed(self, connection: BoundedProtocol) -> None:
        """It is gone."""
        self.open.pop(connection, None)


class BoundedProtocol(H11Protocol):
    """One connection; `limits` by a subclass for each listener (`protocol_of`)."""

    limits: ConnectionLimits
    is_half_closed = False
    """Whether the client has ended its side, and may read what it has asked for."""
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.limits.opened(self)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timers()
        self._unset_keepalive_if_required()
        self.limits.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.limits.used(self)
        super().data_received(data)
        self._show_itself()
        self._await_head()

    def _show_itself(self) -> None:
        """To whoever answers; it begins in a later turn of the loop."""
        if self.cycle is not None:
            self.cycle.scope["state"][CONNECTION] = self

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._show_itself()
        if self.is_idle and (self.conn.their_state is h11.SEND_BODY or self.is_half_closed):
            self.transport.close()  # the rest of a body that nobody wants, or nothing more comes

    def eof_received(self) -> bool:  # type: ignore[override]
        """Nothing more comes. What was asked for whole is answered, if that is at once (`Leaving`);
        not over TLS, where an end is that of both sides."""
        self.is_half_closed = True
        if self.scheme == "https" or self.is_idle or self.conn.their_state is h11.SEND_BODY:
            return False
        self.cycle.message_event.set()
        return True

    def leave(self) -> None:
        """See `Leaving`."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP. Where it is the rest of a request that is being answered, whoever
        answers it is not heard any more."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()  # a half answer must not look like a whole one
            return
        error = sys.exception()
        why = " ".join(str(error).split())[:WHY_CHARACTERS_MAX] if error is not None else msg
        answer = refusal(400, f"the request is no HTTP: {why}")
        answer.headers["connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % one for one in answer.raw_headers)
        # A request of HEAD, too, that ends as it should not: h11 would take no body for it.
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%s\r\n%s" % (head, answer.body))
        self.transport.close()

    def _await_head(self) -> None:
        """The time for a head runs from its first byte, or from the connection's begin."""
        if not self.is_idle:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None
        elif self._head_timer is None and self.timeout_keep_alive_task is None:
            self._head_timer = self.loop.call_later(self.limits.timeout_s, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._write_timer = None


def protocol_of(
    app: ASGIApp, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop
) -> Callable[[], asyncio.Protocol]:
    """What makes the connections of one listener."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # clients' faults are no news
    config = Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
    )
    config.load()
    state = ServerState()

    class Bound(BoundedProtocol):
        pass

    Bound.limits = limits
    return lambda: Bound(config, state, {}, loop)


async def listen(
    loop: asyncio.AbstractEventLoop,
    fd: int,
    protocol: Callable[[], asyncio.Protocol],
    tls: ssl.SSLContext | None,
    handshake_s: float,
) -> asyncio.Server:
    """Accept the connections of a listening socket that this process was given."""
    accepting = socket.socket(fileno=fd)
    if tls is None:
        return await loop.create_server(protocol, sock=accepting)
    return await loop.create_server(
        protocol, sock=accepting, ssl=tls, ssl_handshake_timeout=handshake_s
    )
