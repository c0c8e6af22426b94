"""The addresses at which a proxy serves: one port for each broker of the cluster behind it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import NamedTuple

BROKERS_MAX = 1000
BACKLOG = 512


class Target(NamedTuple):
    """Where connections of one port lead: addresses that are tried one after the other."""

    addresses: tuple[tuple[str, int], ...]


class Ports:
    """Opens a port when a broker is first heard of. `listen(socket, target)` serves it.

    The brokers' ports are the next ones behind the first, those that are free; with port 0 any.
    """

    def __init__(
        self, host: str, port: int, listen: Callable[[socket.socket, Target], None]
    ) -> None:
        self._listen = listen
        self._family, self._host = socket.AF_INET, host
        self._first_port = port
        self._last_port = port
        self._ports: dict[tuple[str, int], int] = {}

    def open_first(self, target: Target) -> tuple[str, int]:
        """Serve the bootstrap address: where that is. OSError."""
        self._family, self._host = _resolved(self._host)
        port = self._open(self._first_port, target)
        if len(target.addresses) == 1:
            # Else the port leads to another broker while the first one is not there, and who
            # asks for the first by it would be answered by that other one.
            self._ports[target.addresses[0]] = port
        return self._host, port

    def of(self, host: str, port: int) -> int:
        """The port of a broker; OSError where none can be opened."""
        own = self._ports.get((host, port))
        if own is None:
            if len(self._ports) >= BROKERS_MAX:
                raise OSError(errno.EMFILE, f"more than {BROKERS_MAX} addresses of brokers")
            own = self._ports[host, port] = self._open_next(Target(((host, port),)))
        return own

    def _open_next(self, target: Target) -> int:
        if self._first_port == 0:
            return self._open(0, target)
        for port in range(self._last_port + 1, self._first_port + 2 * BROKERS_MAX):
            if port > 65535:
                break
            self._last_port = port
            try:
                return self._open(port, target)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
        raise OSError(errno.EADDRINUSE, f"no free port behind {self._first_port}")

    def _open(self, port: int, target: Target) -> int:
        opened = socket.create_server(
            (self._host, port), family=self._family, backlog=BACKLOG, reuse_port=False
        )
        opened.setblocking(False)
        self._listen(opened, target)
        number: int = opened.getsockname()[1]
        return number


def _resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The first address of a name, of IPv4 where it has one; OSError."""
    if not host:
        return socket.AF_INET, "0.0.0.0"
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    family, _, _, _, address = sorted(found, key=lambda row: row[0] != socket.AF_INET)[0]
    return family, str(address[0])
