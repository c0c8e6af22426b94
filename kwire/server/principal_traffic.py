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
    ended; `moved` adds those that are open."""

    def __init__(self) -> None:
        self._ended: dict[str, list[int]] = {}

    def closed(self, connection: Counted) -> None:
        """The connection has ended; its socket is still there."""
        received, sent = bytes_moved(connection.transport)
        _add(self._ended, connection.principal, received, sent, connection.bytes_stored)

    def moved(self, connections: Iterable[Counted]) -> Iterator[dict[str, list[int]] | None]:
        """None after each of the open connections, so that the loop may do other work; then the
        sums with them."""
        sums = {principal: list(values) for principal, values in self._ended.items()}
        for connection in connections:
            received, sent = bytes_moved(connection.transport)
            _add(sums, connection.principal, received, sent, connection.bytes_stored)
            yield None
        yield sums


def _add(sums: dict[str, list[int]], principal: str, received: int, sent: int, stored: int) -> None:
    if principal not in sums and len(sums) >= PRINCIPALS_MAX:
        principal = OTHERS
    values = sums.setdefault(principal, [0, 0, 0])
    values[0] += received
    values[1] += sent
    values[2] += stored
