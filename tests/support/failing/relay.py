"""A network that breaks: between clients and a broker whose advertised address is here.

It reads nothing but sizes, API keys and correlation ids. `lose` has it end the next connection with
a request of an API: in front of the request, behind it, or in the middle of its reply.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import NamedTuple

REQUEST, REPLY, HALF_A_REPLY = "request", "reply", "half a reply"
HOST = "127.0.0.1"


class Loss(NamedTuple):
    """What is lost, of which API."""

    what: str
    api_key: int


class Relay:
    """Listens from the start; `target` may be set later. `losses` counts those that happened."""

    def __init__(self) -> None:
        self._listening = socket.create_server((HOST, 0))
        self.port = int(self._listening.getsockname()[1])
        self.target = 0
        self.losses = 0
        self._next: Loss | None = None
        self._told: tuple[int, Callable[[], None]] | None = None
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what: str, api_key: int) -> None:
        """Of the next request of this API."""
        with self._lock:
            self._next = Loss(what, api_key)

    def tell(self, api_key: int, then: Callable[[], None]) -> None:
        """Call `then` once the next request of this API has been passed on."""
        with self._lock:
            self._told = (api_key, then)

    def passed(self, api_key: int) -> None:
        """A request has been passed on."""
        with self._lock:
            told = self._told
            if told is None or told[0] != api_key:
                return
            self._told = None
        told[1]()

    def close(self) -> None:
        """End all connections, and listen no more."""
        self._listening.close()
        for one in self._open:
            _end(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                broker = socket.create_connection((HOST, self.target))
            except OSError:
                return
            self._open += [client, broker]
            crossing = _Crossing(self, client, broker)
            threading.Thread(target=crossing.requests, daemon=True).start()
            threading.Thread(target=crossing.replies, daemon=True).start()

    def taken(self, api_key: int) -> str | None:
        """What is to be lost of this request."""
        with self._lock:
            loss = self._next
            if loss is None or loss.api_key != api_key:
                return None
            self._next = None
            self.losses += 1
            return loss.what


class _Crossing:
    def __init__(self, relay: Relay, client: socket.socket, broker: socket.socket) -> None:
        self._relay = relay
        self._client = client
        self._broker = broker
        self._marked: dict[int, str] = {}

    def requests(self) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame(self._client):
                api_key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
                lost = self._relay.taken(api_key)
                if lost == REQUEST:
                    break
                if lost is not None:
                    self._marked[correlation_id] = lost
                self._broker.sendall(frame)
                self._relay.passed(api_key)
        self._both_end()

    def replies(self) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame(self._broker):
                lost = self._marked.get(struct.unpack_from(">i", frame, 4)[0])
                if lost is not None:
                    if lost == HALF_A_REPLY:
                        self._client.sendall(frame[: len(frame) // 2])
                    break
                self._client.sendall(frame)
        self._both_end()

    def _both_end(self) -> None:
        _end(self._client)
        _end(self._broker)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _frame(one: socket.socket) -> bytes:
    """Size and all; nothing at the end."""
    head = _exactly(one, 4)
    if len(head) < 4:
        return b""
    (size,) = struct.unpack(">i", head)
    body = _exactly(one, size)
    return head + body if len(body) == size else b""


def _exactly(one: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = one.recv(size - len(received))
        if not piece:
            break
        received += piece
    return received
