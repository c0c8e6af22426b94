"""What each principal has moved: bytes over its connections, and bytes of batches it has stored.

Nothing is counted for each request but what is stored. How much went over a connection the kernel
knows: it is asked when metrics are read, and when the connection ends. Without such a kernel, and
on a simulated network, it is 0.

    struct tcp_info   offset 0    u8   tcpi_state
                      offset 120  u64  tcpi_bytes_acked     what the client has of our bytes
                      offset 128  u64  tcpi_bytes_received  its end of the stream counts one byte

Source: Linux's include/uapi/linux/tcp.h, RFC 4898.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Protocol

PRINCIPALS_MAX = 1000
OTHERS = "others"
"""Stands for the principals beyond `PRINCIPALS_MAX`; the name of a principal has a colon."""

_INFO = Struct("=B119xQQ")
_ENDED_BY_CLIENT = frozenset({6, 8, 9, 11})  # TIME_WAIT, CLOSE_WAIT, LAST_ACK, CLOSING
_TCP_INFO = getattr(socket, "TCP_INFO", None)


class Counted(Protocol):
    """A connection as it is looked at here."""

    transport: asyncio.Transport
    principal: str
    is_authenticated: bool
    bytes_stored: int


def bytes_moved(transport: asyncio.BaseTransport) -> tuple[int, int]:
    """(received, sent and acknowledged) over a connection."""
    if _TCP_INFO is None:
        return 0, 0
    try:
        found = transport.get_extra_info("socket")
        info = found.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _INFO.size)
    except (OSError, AttributeError):
        return 0, 0
    if len(info) < _INFO.size:
        return 0, 0
    state, acknowledged, received = _INFO.unpack(info)
    return max(0, received - (state in _ENDED_BY_CLIENT)), acknowledged


class PrincipalTraffic:
    """The sums of one listener: [received, sent, stored] by principal, of connections that have
    ended; `moved` adds those that are open. No sum ever falls: they are shown as counters."""

    def __init__(self) -> None:
        self._ended: dict[str, list[int]] = {}
        self._named: dict[str, None] = {}
        """The principals that have a sum of their own, for good."""
        self._readings: list[_Reading] = []

    def closed(self, connection: Counted) -> None:
        """The connection has ended; its socket is still there."""
        moved = bytes_moved(connection.transport)
        for reading in self._readings:
            reading.ended[connection] = moved
        self._add(self._ended, connection, moved)

    def moved(self, connections: Iterable[Counted]) -> Iterator[dict[str, list[int]] | None]:
        """None after each of the open connections, so that the loop may do other work; then the
        sums with them. One that has not authenticated yet is left out: what it has moved will be
        somebody else's."""
        sums = {principal: list(values) for principal, values in self._ended.items()}
        reading = _Reading()
        self._readings.append(reading)
        try:
            for connection in connections:
                moved = reading.ended.get(connection)
                if moved is None and connection.is_authenticated:
                    moved = bytes_moved(connection.transport)
                if moved is not None:
                    self._add(sums, connection, moved)
                yield None
        finally:
            self._readings.remove(reading)
        yield sums

    def _add(self, sums: dict[str, list[int]], connection: Counted, moved: tuple[int, int]) -> None:
        principal = connection.principal
        if principal not in self._named:
            if len(self._named) < PRINCIPALS_MAX:
                self._named[principal] = None
            else:
                principal = OTHERS
        values = sums.setdefault(principal, [0, 0, 0])
        values[0] += moved[0]
        values[1] += moved[1]
        values[2] += connection.bytes_stored


class _Reading:
    """Sums that are being made: what connections that ended meanwhile have moved. Their sockets
    tell nothing any more, and the sums of those that ended were taken before."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended: dict[Counted, tuple[int, int]] = {}
