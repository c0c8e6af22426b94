"""Whether a process is gone: a connection of it has closed, and a new one to it is refused.

A machine refuses a connection (ECONNREFUSED) for a port on which nobody listens. So a process that
was reached at an address, has lost its connection and refuses the next one there has ended, or has
stopped to serve. Nothing else says so: no answer may be the network or a stopped process, a reset
of the new connection a full backlog or a process in between, a name that is not known is nobody's.

    outcome of a dial   what it means
    ACCEPTED            somebody listens; a process that ends closes its sockets one by one
    REFUSED             nobody listens at any address of the name
    UNKNOWN             anything else
"""

from __future__ import annotations

import asyncio
import enum
import errno
import socket
from collections.abc import Callable
from typing import NamedTuple

DIAL_TIMEOUT_S = 1.0
PAUSES_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Before each dial: a process that is ending, on a busy machine, may still listen at the first."""
SUSPECTS_MAX = 1000
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""This machine has no addresses of that family at all (`localhost` without IPv6)."""

Address = tuple[str, int]


class Outcome(enum.Enum):
    """See the module."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class _Suspect(NamedTuple):
    """One process that may be gone."""

    address: Address
    is_silent: Callable[[], bool]
    gone: Callable[[], None]


async def dial(loop: asyncio.AbstractEventLoop, address: Address) -> Outcome:
    """Open one connection to `(host, port)` and close it again; takes `DIAL_TIMEOUT_S` at most."""
    try:
        return await asyncio.wait_for(_dial(loop, address), DIAL_TIMEOUT_S)
    except (TimeoutError, OSError):
        return Outcome.UNKNOWN


async def _dial(loop: asyncio.AbstractEventLoop, address: Address) -> Outcome:
    refused = False
    for found in await loop.getaddrinfo(*address, type=socket.SOCK_STREAM):
        host, port = found[4][:2]
        try:
            transport, _ = await loop.create_connection(asyncio.Protocol, str(host), int(port))
        except ConnectionRefusedError:
            refused = True
        except OSError as error:
            if error.errno not in NOT_HERE:
                return Outcome.UNKNOWN
        else:
            transport.close()
            return Outcome.ACCEPTED
    return Outcome.REFUSED if refused else Outcome.UNKNOWN


class RefusedDials:
    """Dials nodes whose connection has closed: one dial at a time to each, a few in a row."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._next: dict[int, _Suspect] = {}
        self._closed = False

    def suspect(
        self,
        node_id: int,
        address: Address,
        is_silent: Callable[[], bool],
        gone: Callable[[], None],
    ) -> None:
        """A connection of this node has closed: call `gone()` when a new one is refused.

        Not when it is heard of again meanwhile (`is_silent()` is False then).
        """
        if self._closed or len(self._tasks) >= SUSPECTS_MAX:
            return
        suspect = _Suspect(address, is_silent, gone)
        if node_id in self._tasks:
            self._next[node_id] = suspect  # the dial under way began before this
            return
        self._tasks[node_id] = self._loop.create_task(self._probe(node_id, suspect))

    async def _probe(self, node_id: int, suspect: _Suspect) -> None:
        outcome = Outcome.ACCEPTED
        for pause_s in PAUSES_S:
            if pause_s:
                await asyncio.sleep(pause_s)
            if not suspect.is_silent() or node_id in self._next:
                break
            outcome = await dial(self._loop, suspect.address)
            if outcome is not Outcome.ACCEPTED:
                break
        del self._tasks[node_id]
        following = self._next.pop(node_id, None)
        if outcome is Outcome.REFUSED and suspect.is_silent():
            suspect.gone()
        if following is not None:
            self.suspect(node_id, *following)

    def close(self) -> None:
        """No more dials."""
        self._closed = True
        tasks, self._tasks = self._tasks, {}
        self._next.clear()
        for task in tasks.values():
            task.cancel()
