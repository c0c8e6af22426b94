"""Ports of this machine that nobody uses now.

Where the system tells which ports it gives to outgoing connections (Linux), those are left out:
such a connection could take a port between the look at it and the broker's start.
"""

from __future__ import annotations

import pathlib
import socket
from collections.abc import Iterator

from kwire.clock import SystemRandom

HOST = "127.0.0.1"
_OUTGOING = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 10_000, 65_535
# Fewer than these are not worth a search: the system's own choice is as good.
_ENOUGH = 1_000
_TRIES = 200


def free_ports(count: int) -> list[int]:
    """So many ports, each another one."""
    sockets: list[socket.socket] = []
    try:
        candidates = _candidates()
        while len(sockets) < count:
            one = socket.socket()
            sockets.append(one)
            if not _binds(one, next(candidates)):
                sockets.pop().close()
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def free_adjacent_ports() -> int:
    """A port that is free together with the next one (a broker's and its controller's)."""
    for candidate in _candidates():
        with socket.socket() as first, socket.socket() as second:
            if _binds(first, candidate):
                port = int(first.getsockname()[1])
                if port < _HIGHEST and _binds(second, port + 1):
                    return port
    raise AssertionError("the candidates do not end")


def _binds(one: socket.socket, port: int) -> bool:
    """Whether a port can be had. OSError where the system has none of its own choice."""
    try:
        one.bind((HOST, port))
    except OSError:
        if not port:
            raise
        return False
    return True


def _candidates() -> Iterator[int]:
    """Ports to try, without end; 0 is the system's own choice."""
    before = _before_outgoing()
    if before - _LOWEST >= _ENOUGH:
        chance = SystemRandom()
        for _ in range(_TRIES):
            yield _LOWEST + chance.below(before - 1 - _LOWEST)
    while True:
        yield 0


def _before_outgoing() -> int:
    """The first port that the system gives to outgoing connections; 0 where it does not tell."""
    try:
        return int(_OUTGOING.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
