"""What the connections of one listener have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from kwire.network.buffers import BufferPool
from kwire.server.dispatch import Dispatcher
from kwire.server.parts import Parts
from kwire.server.request_steps import RequestSteps
from kwire.turn_budget import TurnBudget

if TYPE_CHECKING:
    from kwire.security.sasl.server import AuthenticationCounts, MakeSasl

ConnectionT = TypeVar("ConnectionT")

STARTS_A_TURN = 10
"""Requests of members of groups that a turn of the loop starts: a thousand may arrive in one, when
a broker came back, or when all of them were started by one program. The others start in the next
turns, each in front of what its connection sends behind it."""


class ConnectionSetup(Generic[ConnectionT]):
    """What the connections of one listener have in common.

    `parts` is what handlers may use of the node; `opened` and `closed` hear of every connection.
    `sasl()` is how the client of a new connection has to authenticate, None where it has not;
    `authentications` counts what comes of it.
    """

    __slots__ = (
        "authentications",
        "closed",
        "dispatcher",
        "listener_name",
        "loop",
        "opened",
        "parts",
        "pool",
        "request_bytes_max",
        "sasl",
        "security_protocol",
        "steps",
        "turns",
    )

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        parts: Parts,
        listener_name: str,
        dispatcher: Dispatcher,
        steps: RequestSteps,
        request_bytes_max: int,
        opened: Callable[[ConnectionT], None],
        closed: Callable[[ConnectionT], None],
        security_protocol: str = "PLAINTEXT",
        sasl: MakeSasl | None = None,
        authentications: AuthenticationCounts | None = None,
    ) -> None:
        self.loop = loop
        self.pool = pool
        self.parts = parts
        self.listener_name = listener_name
        self.dispatcher = dispatcher
        self.steps = steps
        self.turns = TurnBudget(loop.call_soon, STARTS_A_TURN)
        self.request_bytes_max = request_bytes_max
        self.opened = opened
        self.closed = closed
        self.security_protocol = security_protocol
        self.sasl = sasl
        self.authentications = authentications


def hands_to_kernel(transport: asyncio.BaseTransport) -> bool:
    """Whether a transport never looks into what it sends: uvloop's, without TLS."""
    is_uvloop = type(transport).__module__.startswith("uvloop")
    return is_uvloop and transport.get_extra_info("sslcontext") is None
